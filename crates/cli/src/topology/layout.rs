//! Where everything goes in the picture: nested frames that flow into rows. All lengths are in pixels.

use super::tree::{Domain, NodeRow};

/// A node.
pub(super) const NODE_WIDTH: usize = 56;
pub(super) const NODE_HEIGHT: usize = 12;
/// Between nodes.
const NODE_GAP: usize = 3;
/// Nodes in one column of a frame.
const COLUMN_MAX: usize = 16;
/// Between frames, and from a frame to what is in it.
const PADDING: usize = 8;
/// Above what is in a frame: its name, and its room below that.
pub(super) const HEADER: usize = 32;
/// The narrowest frame that a name can be read in.
const FRAME_WIDTH_MIN: usize = 78;
/// The whole picture is not made wider than this, unless one frame is.
pub(super) const WIDTH_MAX: usize = 1240;

/// A rectangle with a domain, or with nodes that are in none of a level.
pub(super) struct Frame<'a> {
    pub(super) domain: &'a Domain,
    /// How many levels are above it; 1 for the widest.
    pub(super) depth: usize,
    /// True if it holds the nodes of the domain that are in none of the next level.
    pub(super) is_loose: bool,
    pub(super) width: usize,
    pub(super) height: usize,
    /// Frames within, and where they are.
    pub(super) frames: Vec<(usize, usize, Frame<'a>)>,
    /// Nodes within, and where they are.
    pub(super) nodes: Vec<(usize, usize, &'a NodeRow)>,
}

impl<'a> Frame<'a> {
    /// Lays out a domain and all that is in it.
    pub(super) fn new(domain: &'a Domain, depth: usize, levels_count: usize, width_max: usize) -> Self {
        if depth == levels_count {
            return Self::of_nodes(domain, depth, false);
        }
        let inner_max = width_max.saturating_sub(2 * PADDING).max(FRAME_WIDTH_MIN);
        let inner = domain.domains.iter().map(|inner| Self::new(inner, depth + 1, levels_count, inner_max));
        let mut inner: Vec<Self> = inner.collect();
        if !domain.nodes.is_empty() {
            inner.push(Self::of_nodes(domain, depth, true));
        }
        let (frames, width, height) = flow(inner, inner_max);
        Self {
            domain,
            depth,
            is_loose: false,
            width: (width + 2 * PADDING).max(FRAME_WIDTH_MIN),
            height: height + HEADER + PADDING,
            frames,
            nodes: Vec::new(),
        }
    }

    /// Nodes below each other, in as many columns as it takes.
    fn of_nodes(domain: &'a Domain, depth: usize, is_loose: bool) -> Self {
        let place = |(index, node): (usize, &'a NodeRow)| {
            let x = PADDING + index / COLUMN_MAX * (NODE_WIDTH + NODE_GAP);
            let y = HEADER + index % COLUMN_MAX * (NODE_HEIGHT + NODE_GAP);
            (x, y, node)
        };
        let count = domain.nodes.len();
        let (columns, rows) = (count.div_ceil(COLUMN_MAX).max(1), count.clamp(1, COLUMN_MAX));
        let width = 2 * PADDING + columns * (NODE_WIDTH + NODE_GAP) - NODE_GAP;
        Self {
            domain,
            depth,
            is_loose,
            width: width.max(FRAME_WIDTH_MIN),
            height: HEADER + rows * (NODE_HEIGHT + NODE_GAP) - NODE_GAP + PADDING,
            frames: Vec::new(),
            nodes: domain.nodes.iter().enumerate().map(place).collect(),
        }
    }
}

/// Frames with their places.
type Placed<'a> = Vec<(usize, usize, Frame<'a>)>;

/// Puts frames side by side, in as many rows as it takes. Gives the width and height that they need.
fn flow(frames: Vec<Frame<'_>>, width_max: usize) -> (Placed<'_>, usize, usize) {
    let (mut x, mut y) = (0, 0);
    let (mut row_height, mut width) = (0, 0);
    let mut placed = Vec::with_capacity(frames.len());
    for frame in frames {
        if x > 0 && x + frame.width > width_max {
            (x, y, row_height) = (0, y + row_height + PADDING, 0);
        }
        width = width.max(x + frame.width);
        row_height = row_height.max(frame.height);
        let at = (PADDING + x, HEADER + y);
        x += frame.width + PADDING;
        placed.push((at.0, at.1, frame));
    }
    (placed, width, y + row_height)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeRow {
        NodeRow { name: name.to_owned(), room: vec![], room_empty: vec![], seats: vec![] }
    }

    fn rack(nodes: usize) -> Domain {
        Domain { nodes: (0..nodes).map(|i| node(&i.to_string())).collect(), ..Domain::default() }
    }

    fn block(racks: usize, loose: usize) -> Domain {
        Domain { domains: (0..racks).map(|_| rack(20)).collect(), ..rack(loose) }
    }

    /// Rectangles of all frames within one, and of all nodes, as corners.
    fn rectangles(frame: &Frame<'_>, x: usize, y: usize, into: &mut Vec<[usize; 4]>) {
        for (dx, dy, inner) in &frame.frames {
            let (left, top) = (x + dx, y + dy);
            assert!(dx + inner.width <= frame.width && dy + inner.height <= frame.height);
            rectangles(inner, left, top, into);
        }
        for (dx, dy, _) in &frame.nodes {
            assert!(dx + NODE_WIDTH <= frame.width && dy + NODE_HEIGHT <= frame.height);
            into.push([x + dx, y + dy, x + dx + NODE_WIDTH, y + dy + NODE_HEIGHT]);
        }
    }

    #[test]
    fn everything_is_within_its_frame_and_nothing_covers_anything() {
        let zone = Domain { domains: (0..5).map(|_| block(10, 1)).collect(), ..Domain::default() };
        let cluster = Domain { domains: vec![zone], ..rack(3) };
        let frame = Frame::new(&cluster, 0, 3, WIDTH_MAX);
        assert!(frame.width <= WIDTH_MAX, "{}", frame.width);
        let mut nodes = Vec::new();
        rectangles(&frame, 0, 0, &mut nodes);
        assert_eq!(nodes.len(), 5 * (10 * 20 + 1) + 3);
        for (index, a) in nodes.iter().enumerate() {
            for b in &nodes[..index] {
                assert!(a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1], "{a:?} covers {b:?}");
            }
        }
    }

    #[test]
    fn a_cluster_without_levels_or_nodes_has_a_frame_too() {
        let bare = rack(2);
        assert_eq!(Frame::new(&bare, 0, 0, WIDTH_MAX).nodes.len(), 2);
        let nothing = Domain::default();
        let frame = Frame::new(&nothing, 0, 2, WIDTH_MAX);
        assert!(frame.width >= FRAME_WIDTH_MIN && frame.height >= HEADER);
    }
}
