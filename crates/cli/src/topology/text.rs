//! The tree as lines.

use super::tree::{Domain, Tree, short_key};
use crate::console::{Console, Style, count};
use std::cmp::Reverse;
use std::ops::Range;

/// Between columns.
const GAP: &str = "  ";

/// Prints everything.
pub(super) fn print(tree: &Tree, console: Console) {
    let levels = match &tree.levels[..] {
        [] => "none: no label divides the nodes; --levels says which do".to_owned(),
        levels => levels.join(" > "),
    };
    console.line(&format!("{} {levels}", console.paint(Style::Strong, "levels")));
    console.line(&console.paint(Style::Faint, "room is for so many pods, now/when empty"));
    console.line("");
    print_table(&domain_rows(tree), &(1..3 + tree.shapes.len()), console);
    for line in summary(tree) {
        console.line(&line);
    }
    if !tree.groups.is_empty() {
        console.line("");
        print_table(&group_rows(tree), &(1..2 + tree.levels.len()), console);
    }
    for warning in &tree.warnings {
        console.line(&format!("{} {}", console.paint(Style::Waiting, "warning:"), warning.message));
    }
}

/// Prints rows of equal width, the first as a headline. Some columns are of numbers.
fn print_table(rows: &[Vec<String>], numbers: &Range<usize>, console: Console) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for (index, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if numbers.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        let line = cells.collect::<Vec<_>>().join(GAP);
        let line = line.trim_end();
        console.line(&if index == 0 { console.paint(Style::Strong, line) } else { line.to_owned() });
    }
}

fn domain_rows(tree: &Tree) -> Vec<Vec<String>> {
    let mut headline = vec!["DOMAIN".to_owned(), "NODES".to_owned(), "PODS".to_owned()];
    headline.extend(tree.shapes.iter().cloned());
    let mut rows = vec![headline];
    push_domain(&tree.cluster, "cluster", 0, tree, &mut rows);
    rows
}

fn push_domain(domain: &Domain, name: &str, depth: usize, tree: &Tree, rows: &mut Vec<Vec<String>>) {
    let indent = "  ".repeat(depth);
    let mut row =
        vec![format!("{indent}{name}"), domain.nodes_count.to_string(), domain.pods_count.to_string()];
    row.extend(domain.room.iter().zip(&domain.room_empty).map(|(now, empty)| format!("{now}/{empty}")));
    rows.push(row);
    for inner in &domain.domains {
        push_domain(inner, &inner.value, depth + 1, tree, rows);
    }
    if let Some(level) = tree.levels.get(depth).filter(|_| !domain.nodes.is_empty()) {
        let pods: usize = domain.nodes.iter().flat_map(|node| &node.seats).map(|share| share.pods).sum();
        let mut row =
            vec![format!("{indent}  (no {level})"), domain.nodes.len().to_string(), pods.to_string()];
        for shape in 0..tree.shapes.len() {
            let now: u64 = domain.nodes.iter().filter_map(|node| node.room.get(shape)).sum();
            let empty: u64 = domain.nodes.iter().filter_map(|node| node.room_empty.get(shape)).sum();
            row.push(format!("{now}/{empty}"));
        }
        rows.push(row);
    }
}

/// For every level and shape: how many domains there are, how many are full, and where there is most room.
fn summary(tree: &Tree) -> Vec<String> {
    let mut levels: Vec<Vec<(String, &Domain)>> = vec![Vec::new(); tree.levels.len()];
    collect(&tree.cluster, "", &mut levels);
    let mut lines = Vec::new();
    for (level, domains) in tree.levels.iter().zip(&levels) {
        for (index, shape) in tree.shapes.iter().enumerate() {
            let room = |domain: &Domain| domain.room.get(index).copied().unwrap_or(0);
            let full = domains.iter().filter(|(_, domain)| room(domain) == 0).count();
            let best = domains.iter().min_by_key(|(_, domain)| Reverse(room(domain)));
            let best = match best.filter(|(_, domain)| room(domain) > 0) {
                Some((name, domain)) => format!("{name} takes most, {}", room(domain)),
                None => "none takes any".to_owned(),
            };
            let values = count(domains.len() as u64, "value");
            lines.push(format!("{level}: {values}, {full} full for {shape}; {best}"));
        }
    }
    lines
}

/// All domains by level, with the names that refusals use.
fn collect<'a>(domain: &'a Domain, path: &str, levels: &mut [Vec<(String, &'a Domain)>]) {
    let Some((here, narrower)) = levels.split_first_mut() else { return };
    for inner in &domain.domains {
        let name = if path.is_empty() { inner.value.clone() } else { format!("{path}/{}", inner.value) };
        collect(inner, &name, narrower);
        here.push((name, inner));
    }
}

/// How many domains of each level a group is in, and the narrowest that holds all of it.
fn group_rows(tree: &Tree) -> Vec<Vec<String>> {
    let mut headline = vec!["GROUP".to_owned(), "SEATED".to_owned()];
    headline.extend(tree.levels.iter().map(|level| short_key(level).to_uppercase()));
    headline.push("WITHIN".to_owned());
    let mut rows = vec![headline];
    for group in &tree.groups {
        let mut row = vec![group.name.clone(), format!("{}/{}", group.seated, group.pods)];
        row.extend(group.domains.iter().map(|domains| domains.len().to_string()));
        let whole = group.domains.iter().rev().find_map(|domains| match &domains[..] {
            [only] => Some(only.clone()),
            _ => None,
        });
        row.push(whole.unwrap_or_else(|| "-".to_owned()));
        rows.push(row);
    }
    rows
}
