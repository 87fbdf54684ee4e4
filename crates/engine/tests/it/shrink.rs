//! Makes a failing scenario as small as it can be: whoever reads the failure should see what matters and nothing else.

/// Leaves out lines, then words behind the name, as long as the rest still fails.
pub(crate) fn smallest(text: &str, fails: impl Fn(&str) -> bool) -> String {
    let mut lines: Vec<Vec<String>> =
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
    // Every round leaves something out, so there are at most as many rounds as words.
    loop {
        let without_a_line = (0..lines.len()).map(|at| (at, None));
        let without_a_word = lines
            .iter()
            .enumerate()
            .flat_map(|(at, words)| (2..words.len()).map(move |word| (at, Some(word))));
        let smaller = without_a_line.chain(without_a_word).map(|(at, word)| without(&lines, at, word));
        match smaller.into_iter().find(|lines| fails(&join(lines))) {
            Some(smaller) => lines = smaller,
            None => return join(&lines),
        }
    }
}

fn without(lines: &[Vec<String>], at: usize, word: Option<usize>) -> Vec<Vec<String>> {
    let mut lines = lines.to_vec();
    match word {
        None => {
            lines.remove(at);
        }
        Some(word) => {
            lines[at].remove(word);
        }
    }
    lines
}

fn join(lines: &[Vec<String>]) -> String {
    lines.iter().map(|words| words.join(" ") + "\n").collect()
}

#[test]
fn only_what_matters_is_left() {
    let text = "node a cpu=4 label:zone=1\nnode b cpu=2\npod p cpu=1 memory=1Gi\npod q cpu=9 gpu=1\n";
    let fails = |text: &str| text.contains("node a") && text.contains("cpu=9");
    assert_eq!(smallest(text, fails), "node a\npod q cpu=9\n");
}
