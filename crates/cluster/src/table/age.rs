//! Durations as kubectl prints them: two units while the smaller one still matters, then one.

use crate::kinds::field::Field;
use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time since a field's timestamp; `None` if there is no valid one.
pub(super) fn since(field: &Field<'_, '_>, now: Timestamp) -> Option<String> {
    let then: Timestamp = field.str()?.parse().ok()?;
    Some(human(now.duration_since(then).as_secs()))
}

/// As [`since`], with the word that stands for an unknown time.
pub(super) fn or_unknown(field: &Field<'_, '_>, now: Timestamp) -> String {
    since(field, now).unwrap_or_else(|| "<unknown>".to_owned())
}

/// A number of seconds, for people.
fn human(seconds: i64) -> String {
    match seconds {
        // Clocks of two machines differ a little; only a time well ahead is an error.
        ..-1 => "<invalid>".to_owned(),
        -1 | 0 => "0s".to_owned(),
        1..120 => format!("{seconds}s"),
        120..600 => two(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds, DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(seconds: i64, large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    match seconds % large / small {
        0 => format!("{}{large_unit}", seconds / large),
        rest => format!("{}{large_unit}{rest}{small_unit}", seconds / large),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_kubectl_prints_them() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (123, "2m3s"),
            (599, "9m59s"),
            (600, "10m"),
            (2 * HOUR + 59 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 5 * MINUTE + 1, "3h5m"),
            (8 * HOUR + 30 * MINUTE, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (3 * DAY + 4 * HOUR, "3d4h"),
            (8 * DAY + 4 * HOUR, "8d"),
            (729 * DAY, "729d"),
            (2 * YEAR, "2y"),
            (3 * YEAR + 4 * DAY, "3y4d"),
            (8 * YEAR + 4 * DAY, "8y"),
        ];
        for (seconds, want) in cases {
            assert_eq!(human(seconds), want, "{seconds} seconds");
        }
    }
}
