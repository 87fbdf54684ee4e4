//! Runs `kubectl.script`: real kubectl commands with what must come of them, against one `tutti up`.

use crate::kubectl::World;
use std::io::Read as _;
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("kubectl.script");

/// Commands that a script has at least; fewer means that it was not read as it is written.
const COMMANDS_MIN: usize = 100;
/// How long a command is repeated that says `until`, and how long one may take that says `watch`.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command and what must come of it.
#[derive(Debug, Default)]
struct Step {
    line: usize,
    command: String,
    input: String,
    exit: i32,
    wanted: Vec<String>,
    unwanted: Vec<String>,
    repeats: bool,
    /// It never ends by itself: it is ended when it has said what it should.
    watches: bool,
}

fn parse(script: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (index, line) in script.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let Some(detail) = line.strip_prefix("    ") else {
            steps.push(Step { line: index + 1, command: line.to_owned(), ..Step::default() });
            continue;
        };
        let step = steps.last_mut().expect("a script begins with a command");
        match detail.split_once(' ') {
            Some(("<", text)) => step.input.push_str(&format!("{text}\n")),
            Some(("exit", code)) => step.exit = code.parse().expect("an exit code is a number"),
            Some(("!", text)) => step.unwanted.push(text.to_owned()),
            None if detail == "until" => step.repeats = true,
            None if detail == "watch" => step.watches = true,
            _ => step.wanted.push(detail.to_owned()),
        }
    }
    steps
}

/// Words of a command line; single quotes keep one together, and nothing else means anything.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in command.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            letter => words.last_mut().expect("there is always one").push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

impl Step {
    /// Runs the command once and says what is wrong with the answer.
    fn attempt(&self, world: &World) -> Result<(), String> {
        let words = words(&self.command);
        let (program, arguments) = words.split_first().ok_or("no command")?;
        assert_eq!(program, "kubectl", "line {}", self.line);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        if self.watches {
            return self.watch(world, &arguments);
        }
        let output = world.ask(&arguments, &self.input);
        let said =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        if output.status.code() != Some(self.exit) {
            return Err(format!("exit code {:?}, not {}:\n{said}", output.status.code(), self.exit));
        }
        self.check(&said)
    }

    fn check(&self, said: &str) -> Result<(), String> {
        if let Some(missing) = self.wanted.iter().find(|text| !said.contains(text.as_str())) {
            return Err(format!("{missing:?} is missing in:\n{said}"));
        }
        match self.unwanted.iter().find(|text| said.contains(text.as_str())) {
            Some(surplus) => Err(format!("{surplus:?} should not be in:\n{said}")),
            None => Ok(()),
        }
    }

    fn watch(&self, world: &World, arguments: &[&str]) -> Result<(), String> {
        let mut child = world.command(arguments).spawn().map_err(|error| error.to_string())?;
        let mut output = child.stdout.take().ok_or("no output")?;
        let (sender, pieces) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                if sender.send(piece[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut said = String::new();
        let result = loop {
            match pieces.recv_timeout(PATIENCE) {
                Ok(piece) => said.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => break self.check(&said),
            }
            if self.check(&said).is_ok() {
                break Ok(());
            }
        };
        let _ = child.kill();
        let _ = child.wait();
        result
    }

    fn run(&self, world: &World) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let result = self.attempt(world);
            if result.is_ok() || !self.repeats || Instant::now() >= deadline {
                return result;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn kubectl_script() {
    let steps = parse(SCRIPT);
    assert!(steps.len() >= COMMANDS_MIN, "only {} commands were found", steps.len());
    let Some(world) = World::up(&["--nodes", "3", "--gpus", "8"]) else {
        return;
    };
    let mut failures = Vec::new();
    for step in &steps {
        if let Err(why) = step.run(&world) {
            eprintln!("line {}: {}\n{why}", step.line, step.command);
            failures.push(format!("line {}: {}\n{why}", step.line, step.command));
        }
    }
    println!("{} of {} commands did as the script says", steps.len() - failures.len(), steps.len());
    assert!(
        failures.is_empty(),
        "{} commands did not do as they should:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn quotes_keep_words_together() {
    assert_eq!(words("a  b='{x y}' \"c\""), ["a", "b={x y}", "\"c\""]);
}
