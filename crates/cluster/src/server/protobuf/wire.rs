//! Protobuf's wire format: fields with numbers.

use super::DecodeError;

/// A number has at most this many bytes, seven bits each.
const NUMBER_BYTES_MAX: usize = 10;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A number of fixed length. No field of ours is one, so its value does not matter.
    Fixed,
}

/// Reads the fields of a message one by one.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field with its number; `None` at the end.
    pub(super) fn field(&mut self) -> Result<Option<(u32, WireValue<'a>)>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let number = u32::try_from(tag >> 3).map_err(|_| DecodeError::LongNumber)?;
        let value = match tag & 7 {
            0 => WireValue::Number(self.number()?),
            1 => self.take(8).map(|_| WireValue::Fixed)?,
            2 => {
                let length = usize::try_from(self.number()?).map_err(|_| DecodeError::Truncated)?;
                WireValue::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| WireValue::Fixed)?,
            // Groups are of a past that Kubernetes does not share.
            _ => return Err(DecodeError::Truncated),
        };
        Ok(Some((number, value)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, DecodeError> {
        let mut out = 0;
        for index in 0..NUMBER_BYTES_MAX {
            let &[byte] = self.take(1)? else { return Err(DecodeError::Truncated) };
            out |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return Ok(out);
            }
        }
        Err(DecodeError::LongNumber)
    }
}
