//! A deterministic network of elements that knows no protocol
