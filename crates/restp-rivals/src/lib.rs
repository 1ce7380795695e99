//! Comparison protocols: codecs and glue over shared services
