//! Slots that have a place, through the command line and on a real git repository: sessions, maintenance, care for work, and what
//! befell others (the numbers S01 … name their faults).

mod astray;
mod jobs;
mod killed;
mod maintenance;
mod neighbours;
mod odd;
mod removal;
mod sessions;
mod site;
mod storm;
mod work;
