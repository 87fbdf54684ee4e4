//! Times as people write them: `15s`, `1m30s`, `500ms`, `1h`.

use std::time::Duration;

/// Units, from long to short, which is also the order in which they are written.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Reads a time. Every number needs a unit, and units come from long to short, each once.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: want numbers with h, m, s or ms, as in 1m30s");
    let mut rest = text.trim();
    let mut units = UNITS.iter();
    let mut total_ms: u64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at(letters);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let (_, factor) = units.find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let part = number.checked_mul(*factor).ok_or_else(wrong)?;
        total_ms = total_ms.checked_add(part).ok_or_else(wrong)?;
        rest = tail;
    }
    Ok(Duration::from_millis(total_ms))
}

/// Writes a time so that [`parse`] reads it back, to the millisecond.
pub(super) fn render(time: Duration) -> String {
    let mut rest = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, factor) in UNITS {
        let count = rest / factor;
        rest %= factor;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_as_people_do() {
        for (text, ms) in [
            ("15s", 15_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("1h", 3_600_000),
            ("0s", 0),
            ("1s1ms", 1001),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)));
            assert_eq!(render(Duration::from_millis(ms)), text);
        }
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in
            ["", "15", "s", "1s1m", "1s1s", "-1s", "1.5s", "1d", "99999999999999999999s", "1h 2m", "é"]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
