//! Calling the protocol that a tape says has begun, with what it was given.

use state_machine::call::Call;
use state_machine::protocol::batch::{create_batch, withdraw_batch};
use state_machine::protocol::claim::{claim, claim_tree, probe, tree_is_free};
use state_machine::protocol::create::{Durable, Newborn, acknowledge, create};
use state_machine::protocol::forget::{forget, make_final, purge};
use state_machine::protocol::hold::{Holder, note, record, take_over, write_pending};
use state_machine::protocol::look::{confirm, look, look_at};
use state_machine::protocol::pool::{Wish, change_pool, forget_pool};
use state_machine::protocol::recover::{collect, recover_job};
use state_machine::protocol::request::{answered, discard, request, take};
use state_machine::protocol::settle::{Searched, let_go, settle};
use state_machine::protocol::slot::claim::claim_slot;
use state_machine::protocol::slot::enter::enter;
use state_machine::protocol::slot::give_back::give_back;
use state_machine::protocol::slot::look::look_at_slot;
use state_machine::protocol::slot::maintain::{
    claim_maintenance, conclude_maintenance, end_maintenance, start_maintenance, visit,
};
use state_machine::protocol::slot::mend::{mend, take_broken};
use state_machine::protocol::slot::occupy::{Occupant, leave, occupy};
use state_machine::protocol::slot::place::place;
use state_machine::protocol::slot::remove::remove_slot;
use state_machine::protocol::slot::renew::renew;
use state_machine::protocol::slot::session::{forget_session, open_session, take_back};
use state_machine::protocol::spare::lay_in;
use state_machine::protocol::start::{start, start_numbered};
use state_machine::protocol::supervise::{
    claim_supervision, fail_unmet, is_asked, is_supervised, retire,
};

use super::player::Player;

/// Run a protocol for what it asks of the disk. What comes out of it is not on the tape, and whether it came to its end
/// is for the player to say.
pub(super) fn perform(disk: &mut Player<'_>, call: Call) {
    // Every arm runs to its end or stops; its outcome is dropped by `drop`, as results must not be passed over unseen.
    match call {
        Call::Claim { id } => drop(claim(disk, &id)),
        Call::Probe { place } => drop(probe(disk, &place)),
        Call::TreeIsFree { id } => drop(tree_is_free(disk, &id)),
        Call::ClaimTree { id } => drop(claim_tree(disk, &id)),
        Call::Create {
            mut descriptor,
            key,
            ticket,
            durable,
        } => {
            let key = key.as_ref().map(|(key, count)| (key, *count));
            drop(create(
                disk,
                &mut descriptor,
                key,
                &ticket,
                as_durable(durable),
            ));
        }
        Call::LayIn { ticket } => drop(lay_in(disk, &ticket)),
        Call::Acknowledge => drop(acknowledge(disk, Newborn::on_tape(0))),
        Call::CreateBatch {
            mut descriptors,
            ticket,
        } => drop(create_batch(disk, &mut descriptors, &ticket)),
        Call::WithdrawBatch { jobs, ticket } => drop(withdraw_batch(disk, jobs, &ticket)),
        Call::ChangePool {
            pool,
            slots,
            paused,
            ground,
            new,
        } => drop(change_pool(
            disk,
            &pool,
            Wish {
                slots,
                paused,
                ground,
                new,
            },
        )),
        Call::ForgetPool { pool } => drop(forget_pool(disk, &pool)),
        Call::ClaimSupervision => drop(claim_supervision(disk)),
        Call::IsSupervised => drop(is_supervised(disk)),
        Call::Retire { lock } => drop(retire(disk, lock)),
        Call::IsAsked { id } => drop(is_asked(disk, &id)),
        Call::FailUnmet {
            id,
            why,
            created_at_ms,
            now_ms,
        } => drop(fail_unmet(disk, &id, &why, created_at_ms, now_ms)),
        Call::Start {
            mut descriptor,
            key,
            ticket,
            durable,
        } => drop(start(
            disk,
            &mut descriptor,
            &key,
            &ticket,
            as_durable(durable),
        )),
        Call::StartNumbered {
            mut descriptor,
            key,
            task,
            ticket,
            durable,
        } => {
            let durable = as_durable(durable);
            drop(start_numbered(
                disk,
                &mut descriptor,
                &key,
                &task,
                &ticket,
                durable,
            ));
        }
        Call::Forget { id, ticket } => drop(forget(disk, &id, &ticket)),
        Call::MakeFinal => drop(make_final(disk)),
        Call::Purge { ticket } => drop(purge(disk, &ticket)),
        Call::TakeOver {
            id,
            lock,
            created_at_ms,
            now_ms,
        } => drop(take_over(disk, &id, lock, created_at_ms, now_ms)),
        Call::Record {
            holder,
            status,
            notes,
            durable,
        } => drop(record(
            disk,
            &mut held(holder),
            status,
            &notes,
            as_durable(durable),
        )),
        Call::Note {
            holder,
            what,
            now_ms,
        } => drop(note(disk, &mut held(holder), what, now_ms)),
        Call::WritePending { holder } => drop(write_pending(disk, &mut held(holder))),
        Call::Look { id } => drop(look(disk, &id)),
        Call::Confirm { id } => drop(confirm(disk, &id)),
        Call::LookAt { descriptor } => drop(look_at(disk, descriptor)),
        Call::RecoverJob { id, now_ms } => drop(recover_job(disk, &id, now_ms)),
        Call::Collect { ticket } => drop(collect(disk, &ticket, &mut |_| {})),
        Call::Request {
            id,
            request: asked,
            ticket,
        } => drop(request(disk, &id, asked, &ticket)),
        Call::Take { id } => drop(take(disk, &id)),
        Call::Answered { id } => drop(answered(disk, &id)),
        Call::Discard { id } => drop(discard(disk, &id)),
        Call::Settle {
            holder,
            searched,
            now_ms,
        } => {
            let searched = if searched {
                Searched::Yes
            } else {
                Searched::No
            };
            drop(settle(disk, &mut held(holder), searched, now_ms));
        }
        Call::LetGo {
            holder,
            created_at_ms,
            now_ms,
        } => drop(let_go(disk, held(holder), created_at_ms, now_ms)),
        Call::Occupy {
            pool,
            number,
            now_ms,
        } => drop(occupy(disk, &pool, number, now_ms)),
        Call::Leave { occupant } => drop(leave(disk, occupying(occupant))),
        Call::Place {
            pool,
            most,
            not_those,
            now_ms,
        } => drop(place(disk, &pool, most, &not_those, now_ms)),
        Call::OpenSession {
            occupant,
            claim,
            session,
            ticket,
        } => drop(open_session(
            disk,
            occupying(occupant),
            claim,
            &session,
            &ticket,
        )),
        Call::TakeBack { token } => drop(take_back(disk, &token)),
        Call::ForgetSession { token } => drop(forget_session(disk, &token)),
        Call::Enter { token } => drop(enter(disk, &token)),
        Call::Renew {
            token,
            expires,
            ticket,
        } => drop(renew(disk, &token, expires, &ticket)),
        Call::ClaimSlot { occupant, claim } => {
            drop(claim_slot(disk, &mut occupying(occupant), claim));
        }
        Call::GiveBack {
            occupant,
            condition,
        } => drop(give_back(disk, occupying(occupant), condition)),
        Call::RemoveSlot { occupant, ticket } => {
            drop(remove_slot(disk, occupying(occupant), &ticket));
        }
        Call::TakeBroken { pool, number } => drop(take_broken(disk, &pool, number)),
        Call::Mend { occupant } => drop(mend(disk, occupying(occupant))),
        Call::ClaimMaintenance { pool } => drop(claim_maintenance(disk, &pool)),
        Call::EndMaintenance { lock } => drop(end_maintenance(disk, lock)),
        Call::Visit {
            pool,
            number,
            older_than_ms,
            now_ms,
        } => drop(visit(disk, &pool, number, older_than_ms, now_ms)),
        Call::StartMaintenance { occupant, claim } => {
            drop(start_maintenance(disk, &mut occupying(occupant), claim));
        }
        Call::ConcludeMaintenance {
            occupant,
            outcome,
            now,
        } => drop(conclude_maintenance(
            disk,
            occupying(occupant),
            outcome,
            &now,
        )),
        Call::LookAtSlot { pool, number } => drop(look_at_slot(disk, &pool, number)),
    }
}

fn occupying(known: state_machine::call::InSlot) -> Occupant<u32> {
    let lock = known.lock;
    Occupant::from_tape(known, lock)
}

fn as_durable(durable: bool) -> Durable {
    if durable { Durable::Yes } else { Durable::No }
}

fn held(holding: state_machine::call::Holding) -> Holder<u32> {
    let lock = holding.lock;
    Holder::from_tape(holding, lock)
}
