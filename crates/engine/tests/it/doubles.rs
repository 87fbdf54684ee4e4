//! The engine's own floating point against that of the machine.

#[path = "../../src/score/double.rs"]
#[allow(dead_code)]
mod double;

use crate::random::Dice;
use double::Double;

#[test]
fn every_step_rounds_as_the_machine_does() {
    let mut dice = Dice::new(7);
    let mut number = |bits: u64| {
        let size = dice.roll(0, bits);
        dice.roll(0, 1 << size) as i64
    };
    for _ in 0..200_000 {
        let (a, b, c, d) = (number(40), number(40) + 1, number(47), number(47) + 1);
        let share = |a: i64, b: i64| (a as f64 / b as f64).min(1.0);
        let soft_share =
            |a: i64, b: i64| Double::from_integer(a).divide(Double::from_integer(b)).min(Double::ONE);
        let (hard, soft) = ((share(a, b), share(c, d)), (soft_share(a, b), soft_share(c, d)));
        let shown = format!("{a}/{b} and {c}/{d}");
        let hundred = Double::from_integer(100);
        // Scaled up so that the last binary digits show.
        let reveal = |soft: Double| soft.times(Double::from_integer(1 << 53)).whole();
        let revealed = |hard: f64| (hard * (1_i64 << 53) as f64) as i64;
        for (soft, hard) in [
            (soft.0, hard.0),
            (soft.0.plus(soft.1), hard.0 + hard.1),
            (soft.0.distance(soft.1), (hard.0 - hard.1).abs()),
            (soft.0.times(soft.1), hard.0 * hard.1),
            (soft.0.square_root(), hard.0.sqrt()),
            (soft.0.distance(soft.1).halved(), ((hard.0 - hard.1) / 2.0).abs()),
            (soft.0.times(hundred), hard.0 * 100.0),
        ] {
            assert_eq!(reveal(soft), revealed(hard), "{shown}");
            assert_eq!(soft.whole(), hard as i64, "{shown}");
        }
    }
}
