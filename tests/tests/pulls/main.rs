//! Pulls through the command line, from servers that cut, lie, fall silent and forget (the numbers P01 … name the faults that
//! befell others).

mod answers;
mod connections;
mod control;
mod cuts;
mod hubs;
mod images;
mod killed;
mod landing;
mod models;
mod nginx;
mod ordeal;
mod places;
mod pull;
mod secrets;
mod together;
