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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
