//! What a valid placement is, said independently of the engine, and a search that uses nothing else. For tests: the
//! product does not build it.

pub mod oracle;
pub mod validator;
