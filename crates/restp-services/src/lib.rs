//! Transport services: one folder per question, one file per algorithm
