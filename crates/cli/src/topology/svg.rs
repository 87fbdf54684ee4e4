//! The tree as a picture: a frame for every domain, a bar for every node, a colour for every group.

use super::layout::{Frame, HEADER, NODE_HEIGHT, NODE_WIDTH, WIDTH_MAX};
use super::tree::{Domain, GroupRow, NodeRow, Tree, WHOLE, short_key};
use crate::console::count;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Around everything.
const MARGIN: usize = 12;
/// Lines of text above and below the tree.
const LINE: usize = 18;
/// A group in the legend.
const LEGEND_WIDTH: usize = 230;
/// Groups that the legend lists.
const LEGEND_MAX: usize = 60;
/// Characters of a name in the legend.
const LEGEND_NAME_MAX: usize = 34;
/// A character of the small and of the large font, rounded up.
const CHARACTER_WIDTH: usize = 6;

/// Colours that are told apart by everybody; further groups get hues that lie as far apart as possible.
const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#6a4c93"];
/// The golden angle.
const HUE_STEP: usize = 137;
/// Pods without a group.
const PLAIN: &str = "#9aa0a6";

const STYLE: &str = "text{font:11px sans-serif;fill:#202124}.s{font-size:10px;fill:#5f6368}.n{font-weight:bold}\
    .d{fill:#f8f9fa;stroke:#bdc1c6}.d1{fill:#e8eaed}.d2{fill:#f1f3f4}.l{stroke-dasharray:4 3}\
    .b{fill:#fff;stroke:#bdc1c6}.w{stroke:#c5221f;stroke-width:1.5}";

/// The picture, as the text of an SVG file.
pub(super) fn draw(tree: &Tree) -> String {
    let frame = Frame::new(&tree.cluster, 0, tree.levels.len(), WIDTH_MAX - 2 * MARGIN);
    let legend = legend_lines(tree);
    let columns = ((frame.width.max(LEGEND_WIDTH)) / LEGEND_WIDTH).max(1);
    let title = headline(tree);
    let width = (frame.width.max(title.chars().count() * CHARACTER_WIDTH)) + 2 * MARGIN;
    let top = MARGIN + LINE;
    let legend_top = top + frame.height + LINE;
    let height = legend_top + legend.len().div_ceil(columns) * LINE + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n",
        escape(&title)
    );
    text(&mut out, MARGIN, MARGIN + 8, "", &title);
    let suspects = tree.warnings.iter().flat_map(|warning| &warning.nodes).map(String::as_str).collect();
    Pen { tree, suspects }.frame(&mut out, &frame, MARGIN, top);
    for (index, (colour, line)) in legend.iter().enumerate() {
        let (x, y) = (MARGIN + index % columns * LEGEND_WIDTH, legend_top + index / columns * LINE);
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\" stroke=\"#5f6368\"/>"
        );
        text(&mut out, x + 18, y + 10, "", line);
    }
    out.push_str("</svg>\n");
    out
}

fn headline(tree: &Tree) -> String {
    let short: Vec<&str> = tree.levels.iter().map(|level| short_key(level)).collect();
    let levels = if short.is_empty() { "no levels".to_owned() } else { short.join(" > ") };
    let shape = tree.shapes.first().map_or("", String::as_str);
    format!(
        "{levels}. A bar is a node, its colours show who uses it. n/m: room for pods of {shape}, now/when empty."
    )
}

/// What a legend says about every group, after a colour.
fn legend_lines(tree: &Tree) -> Vec<(String, String)> {
    let line = |(index, group): (usize, &GroupRow)| {
        let colour = if group.seated > 0 { colour(index) } else { "none".to_owned() };
        let state = if group.seated > 0 { "" } else { " (waits)" };
        let name = shorten(&group.name, LEGEND_NAME_MAX);
        (colour, format!("{name} {}/{}{state}", group.seated, group.pods))
    };
    let mut lines: Vec<(String, String)> =
        tree.groups.iter().enumerate().take(LEGEND_MAX).map(line).collect();
    if let Some(more) = tree.groups.len().checked_sub(LEGEND_MAX).filter(|&more| more > 0) {
        lines.push(("none".to_owned(), format!("and {more} more groups")));
    }
    if has_plain_pods(&tree.cluster) {
        lines.push((PLAIN.to_owned(), "pods without a group".to_owned()));
    }
    lines
}

fn has_plain_pods(domain: &Domain) -> bool {
    let is_plain = |node: &NodeRow| node.seats.iter().any(|share| share.group.is_none());
    domain.nodes.iter().any(is_plain) || domain.domains.iter().any(has_plain_pods)
}

fn colour(group: usize) -> String {
    if let Some(colour) = COLOURS.get(group) {
        return (*colour).to_owned();
    }
    let hue = group * HUE_STEP % 360;
    let (dark, light) = [(30, 190), (90, 220), (0, 140)][group % 3];
    // One of the three rises, one is full and one falls, by turns of 60 degrees.
    let [red, green, blue] = [0, 240, 120].map(|turn| {
        let part = ((hue + turn) % 360).abs_diff(180).saturating_sub(60).min(60);
        dark + (light - dark) * part / 60
    });
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// What drawing needs to know.
struct Pen<'a> {
    tree: &'a Tree,
    /// Nodes that warnings are about.
    suspects: BTreeSet<&'a str>,
}

impl Pen<'_> {
    fn frame(&self, out: &mut String, frame: &Frame<'_>, x: usize, y: usize) {
        let (width, height) = (frame.width, frame.height);
        let class = if frame.is_loose { "d l".to_owned() } else { format!("d d{}", frame.depth) };
        let (name, room) = (self.name(frame), self.room(frame));
        let _ = writeln!(
            out,
            "<g><title>{}</title><rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
             rx=\"3\"/>",
            escape(&format!("{name}: {room}"))
        );
        let characters = frame.width.saturating_sub(12) / CHARACTER_WIDTH;
        text(out, x + 8, y + 13, "n", &shorten(&name, characters));
        text(out, x + 8, y + HEADER - 7, "s", &shorten(&room, characters));
        out.push_str("</g>\n");
        for (dx, dy, inner) in &frame.frames {
            self.frame(out, inner, x + dx, y + dy);
        }
        for (dx, dy, node) in &frame.nodes {
            self.node(out, node, x + dx, y + dy);
        }
    }

    /// `rack 7`, or just `rack-7`.
    fn name(&self, frame: &Frame<'_>) -> String {
        let level = |depth: usize| self.tree.levels.get(depth).map_or("", |key| short_key(key));
        let value = &frame.domain.value;
        match frame.depth.checked_sub(1) {
            _ if frame.is_loose => format!("no {}", level(frame.depth)),
            None => "cluster".to_owned(),
            Some(depth) if value.contains(level(depth)) => value.clone(),
            Some(depth) => format!("{} {value}", level(depth)),
        }
    }

    fn room(&self, frame: &Frame<'_>) -> String {
        if frame.is_loose {
            return count(frame.domain.nodes.len() as u64, "node");
        }
        let pair = frame.domain.room.first().zip(frame.domain.room_empty.first());
        let room = pair.map_or_else(String::new, |(now, empty)| format!("{now}/{empty}"));
        if frame.depth == self.tree.levels.len() {
            room
        } else {
            format!("{room}, {}", count(frame.domain.nodes_count as u64, "node"))
        }
    }

    fn node(&self, out: &mut String, node: &NodeRow, x: usize, y: usize) {
        let class = if self.suspects.contains(node.name.as_str()) { "b w" } else { "b" };
        let _ = write!(
            out,
            "<g><title>{}</title><rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{NODE_WIDTH}\" \
             height=\"{NODE_HEIGHT}\"/>",
            escape(&self.story(node))
        );
        let (mut taken, mut left) = (0, 0);
        for share in &node.seats {
            taken = (taken + share.thousandths).min(WHOLE);
            // Within the outline. Rounded as a sum, so that parts that make a whole fill it.
            let right = (NODE_WIDTH - 2) * taken as usize / WHOLE as usize;
            if right > left {
                let fill = share.group.map_or_else(|| PLAIN.to_owned(), colour);
                let _ = write!(
                    out,
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"/>",
                    x + 1 + left,
                    y + 1,
                    right - left,
                    NODE_HEIGHT - 2
                );
            }
            left = right;
        }
        out.push_str("</g>\n");
    }

    /// What a pointer on the node tells.
    fn story(&self, node: &NodeRow) -> String {
        let mut story = node.name.clone();
        for ((shape, now), empty) in self.tree.shapes.iter().zip(&node.room).zip(&node.room_empty) {
            let _ = write!(story, "; room for {now} of {empty} pods of {shape}");
        }
        for share in &node.seats {
            let _ = write!(story, "; {} of {}", share.pods, share.name.as_deref().unwrap_or("no group"));
        }
        story
    }
}

fn shorten(name: &str, characters: usize) -> String {
    if name.chars().count() <= characters {
        return name.to_owned();
    }
    name.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

fn text(out: &mut String, x: usize, y: usize, class: &str, words: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<text{class} x=\"{x}\" y=\"{y}\">{}</text>", escape(words));
}

/// Text as XML takes it: names come from outside.
fn escape(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::source::Cluster;
    use super::super::survey;
    use super::*;
    use tutti_model::scenario::Scenario;

    fn picture(text: &str) -> String {
        let cluster = Cluster::of_scenario(Scenario::parse(text).unwrap()).unwrap();
        draw(&survey(&cluster, &[], Vec::new()).unwrap())
    }

    /// Checks that every tag is closed by its like, attributes are quoted and text is escaped; gives the tags.
    fn tags(svg: &str) -> Vec<String> {
        let (mut open, mut all) = (Vec::new(), Vec::new());
        let mut rest = svg;
        while let Some(start) = rest.find('<') {
            assert!(!rest[..start].contains('>'), "a bare > in {:?}", &rest[..start]);
            let end = start + rest[start..].find('>').expect("a tag that ends");
            let tag = &rest[start + 1..end];
            assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "{tag}");
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "{tag}"),
                None => {
                    let name = tag.split([' ', '/']).next().unwrap().to_owned();
                    if !tag.ends_with('/') {
                        open.push(name.clone());
                    }
                    all.push(name);
                }
            }
            rest = &rest[end + 1..];
        }
        assert!(open.is_empty(), "left open: {open:?}");
        for after in svg.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|name| after.starts_with(name)), "{after}");
        }
        all
    }

    #[test]
    fn a_picture_is_well_formed_and_names_domains_nodes_and_groups() {
        let svg = picture(
            "node a x4 gpu=8 label:block=1 label:rack=r{i/2}
             node b x4 gpu=8 label:block=2 label:rack=q{i/2}
             node bare gpu=8
             group train gang=4 required:rack
             pod t x4 group=train gpu=4
             group huge gang=99
             pod h x99 group=huge gpu=8
             pod plain on=bare gpu=2",
        );
        let tags = tags(&svg);
        assert_eq!(tags.iter().filter(|tag| *tag == "svg").count(), 1);
        for words in [
            "block 1",
            "rack r1",
            ">0/16<",
            ">16/16<",
            "no block",
            ">1 node<",
            "a-3; room for 8 of 8 pods of gpu=1",
            "; 2 of default/train",
            "default/train 4/4",
            "default/huge 0/99 (waits)",
            "pods without a group",
        ] {
            assert!(svg.contains(words), "{words:?} is not in {svg}");
        }
        assert_eq!(svg.matches(COLOURS[1]).count(), 2 + 1, "two full nodes and the legend: {svg}");
        assert_eq!(svg.matches("class=\"b w\"").count(), 1, "the node without labels stands out");
    }

    #[test]
    fn names_from_outside_do_not_break_the_picture() {
        let svg = picture("node <&\"> cpu=1 label:rack=]]>&amp;\nnode b cpu=1 label:rack=\u{1b}x");
        tags(&svg);
        assert!(svg.contains("&lt;&amp;&quot;&gt;") && svg.contains("\u{fffd}x"), "{svg}");
    }

    #[test]
    fn fifty_racks_of_three_levels_fit_a_screen_and_groups_are_told_apart() {
        let mut text =
            "node n x800 gpu=8 label:zone=z{i/400} label:block=b{i/80} label:rack=r{i/16}\n".to_owned();
        for group in 0..30 {
            text +=
                &format!("group g{group} gang=16 required:rack\npod g{group}p x16 group=g{group} gpu=8\n");
        }
        let svg = picture(&text);
        tags(&svg);
        let width: usize = svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        assert!(width <= WIDTH_MAX, "{width}");
        for rack in 0..50 {
            assert!(svg.contains(&format!(">rack r{rack}<")), "rack r{rack} is not labelled");
        }
        let colours: BTreeSet<String> = (0..30).map(colour).collect();
        assert_eq!(colours.len(), 30);
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!((shorten("short", 5), shorten("longer", 5)), ("short".into(), "long…".into()));
    }
}
