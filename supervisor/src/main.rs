//! bin
#![allow(missing_docs)]
use clap::Parser; #[derive(clap::Parser)] struct A{ #[arg(long)] x: Option<String>}
fn main(){ let a=A::parse(); println!("{:?}", a.x); }
