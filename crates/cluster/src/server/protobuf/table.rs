//! The table of messages.

use std::collections::HashMap;
use std::sync::OnceLock;

static TEXT: &str = include_str!("messages.txt");

/// Position of a message in the table.
pub(super) type MessageId = usize;

/// What a field holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Int,
    Bool,
    Bytes,
    Quantity,
    Time,
    MicroTime,
    IntOrText,
    /// JSON in a message of its own.
    Json,
    /// A message that holds nothing but a list, which JSON spells as the list itself.
    Items(Box<Type>),
    Message(MessageId),
}

/// How often a field holds it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shape {
    One {
        /// A zero is not the same as nothing.
        keeps_zero: bool,
    },
    List,
    Map,
    /// The fields of the message are fields of the one that it is in.
    Inlined,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    number: u32,
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) of: Type,
}

/// All messages.
#[derive(Debug)]
pub(super) struct Table {
    ids: HashMap<&'static str, MessageId>,
    messages: Vec<(&'static str, Vec<Field>)>,
}

/// The table; read on first use.
pub(super) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::parse(TEXT))
}

impl Table {
    fn parse(text: &'static str) -> Self {
        let lines: Vec<(&str, &str)> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(':'))
            .collect();
        let ids: HashMap<&str, MessageId> =
            lines.iter().enumerate().map(|(id, (name, _))| (*name, id)).collect();
        let fields = |text: &str| text.split(';').filter_map(|field| Field::parse(field, &ids)).collect();
        let messages = lines.iter().map(|(name, text)| (*name, fields(text))).collect();
        Self { ids, messages }
    }

    pub(super) fn find(&self, name: &str) -> Option<MessageId> {
        self.ids.get(name).copied()
    }

    pub(super) fn name(&self, id: MessageId) -> &str {
        self.messages.get(id).map_or("", |(name, _)| name)
    }

    pub(super) fn field(&self, id: MessageId, number: u32) -> Option<&Field> {
        let (_, fields) = self.messages.get(id)?;
        fields.iter().find(|field| field.number == number)
    }

    /// Fields that are written in the table, and those of them that were understood, for tests.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let lines =
            TEXT.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(':'));
        let written =
            lines.flat_map(|(_, fields)| fields.split(';')).filter(|field| !field.trim().is_empty()).count();
        (written, self.messages.iter().map(|(_, fields)| fields.len()).sum())
    }
}

impl Field {
    fn parse(text: &str, ids: &HashMap<&str, MessageId>) -> Option<Self> {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let kind = words.next()?;
        let name = words.next().unwrap_or_default().to_owned();
        let (shape, kind) = match kind.split_at_checked(1)? {
            ("*", kind) => (Shape::List, kind),
            ("%", kind) => (Shape::Map, kind),
            ("^", kind) => (Shape::Inlined, kind),
            ("!", kind) => (Shape::One { keeps_zero: true }, kind),
            _ => (Shape::One { keeps_zero: false }, kind),
        };
        Some(Self { number, name, shape, of: Type::parse(kind, ids)? })
    }
}

impl Type {
    fn parse(text: &str, ids: &HashMap<&str, MessageId>) -> Option<Self> {
        Some(match text {
            "s" => Self::Text,
            "i" => Self::Int,
            "b" => Self::Bool,
            "y" => Self::Bytes,
            "q" => Self::Quantity,
            "t" => Self::Time,
            "m" => Self::MicroTime,
            "o" => Self::IntOrText,
            "r" => Self::Json,
            other => match other.strip_prefix('[') {
                Some(items) => Self::Items(Box::new(Self::parse(items, ids)?)),
                None => Self::Message(*ids.get(other)?),
            },
        })
    }
}
