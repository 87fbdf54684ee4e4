//! Resource quantities as they stand in JSON.

use serde_json::Value;
use tutti_model::Quantity;

/// The quantity of a JSON value, which may be a text or a plain number; `None` if it is none.
pub(crate) fn of(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// Rewrites a quantity the way Kubernetes stores it: as text, without a fraction, with the largest suffix that
/// keeps it exact. Clients in Go send `1` back where they read `1000m`; without one spelling for one amount that
/// would be a change of an immutable field. What is no quantity, or finer than a thousandth, stays as it is.
pub(crate) fn canonicalise(value: &mut Value) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    *value = Value::String(canonical(&text).unwrap_or(text));
}

const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

fn canonical(text: &str) -> Option<String> {
    let amount: Quantity = text.parse().ok()?;
    // Exponents stay exponents. `E` alone is a suffix, an exponent has digits behind it.
    if text.contains(['e', 'E']) && text.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if !amount.is_whole() {
        let milli = amount.milli_ceil();
        return (Quantity::from_milli(milli) == amount).then(|| format!("{milli}m"));
    }
    let whole = amount.value_ceil();
    let binary = text.ends_with('i') && whole.unsigned_abs() >= 1024;
    Some(if binary { shortest(whole, 1024, &BINARY) } else { shortest(whole, 1000, &DECIMAL) })
}

/// The number with the largest suffix that leaves it whole.
fn shortest(mut number: i64, base: i64, suffixes: &[&str]) -> String {
    let mut power = 0;
    while number != 0 && number % base == 0 && power + 1 < suffixes.len() {
        number /= base;
        power += 1;
    }
    format!("{number}{}", suffixes.get(power).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_amount_has_one_spelling() {
        let cases = [
            (json!(1), "1"),
            (json!(0.5), "500m"),
            (json!("1000m"), "1"),
            (json!("1500m"), "1500m"),
            (json!("0.1"), "100m"),
            (json!("1000"), "1k"),
            (json!("2500"), "2500"),
            (json!("1024Mi"), "1Gi"),
            (json!("1.5Gi"), "1536Mi"),
            (json!("0.5Ki"), "512"),
            (json!("0"), "0"),
            (json!("0Gi"), "0"),
            (json!("-1000m"), "-1"),
            (json!("3E"), "3E"),
            (json!("5n"), "5n"),
            (json!("1e3"), "1e3"),
            (json!("1E-3"), "1E-3"),
            (json!("ten"), "ten"),
        ];
        for (input, want) in cases {
            let mut value = input.clone();
            canonicalise(&mut value);
            assert_eq!(value, json!(want), "{input}");
            let once = value.clone();
            canonicalise(&mut value);
            assert_eq!(value, once, "{input} twice");
        }
    }

    #[test]
    fn texts_and_numbers_are_quantities_and_nothing_else_is() {
        assert_eq!(of(&json!("1500m")), Some(Quantity::from_milli(1500)));
        assert_eq!(of(&json!(2)), Some(Quantity::from_value(2)));
        assert_eq!(of(&json!(1.5)), Some(Quantity::from_milli(1500)));
        for other in [json!("1 Gi"), json!(""), json!(true), json!({})] {
            assert_eq!(of(&other), None, "{other}");
        }
    }
}
