/*
 * Credentials. Whoever adds one chooses its id and its secret, so that adding is safe to repeat:
 * the same row again is the same credential. A secret belongs to one row for ever, also a revoked
 * one, and what is revoked stays so. Running the command again needs no token: the row itself says
 * whether it was done.
 *
 * The second run writes nothing, so its COMMIT proves nothing about the first. That is sound where
 * an unknown COMMIT ends the process, as it does on SQLite; a store that goes on after one has to
 * write the row again.
 */
#include "core/decide_internal.h"

#include "base/bug.h"

static bool is_same(const struct idem_credential_row *one, const struct idem_credential_row *two)
{
    return idem_str_equal(one->principal, two->principal) && one->role == two->role &&
           idem_digest_equal(one->secret_sha256, two->secret_sha256) &&
           idem_str_equal(one->providers, two->providers) && idem_str_equal(one->label, two->label);
}

static enum idem_problem add(struct idem_turn *turn)
{
    const struct idem_credential_change *change = &turn->command->credential;
    const struct idem_credential_row *known = &turn->facts->credential;
    struct idem_credential_write *write = &turn->decision->credential;
    if (known->row != 0) {
        bool is_there = known->revoked_us == 0 && is_same(known, &change->row);
        return is_there ? IDEM_PROBLEM_NONE : IDEM_PROBLEM_CREDENTIAL_CONFLICT;
    }
    if (turn->facts->secret_taken) {
        return IDEM_PROBLEM_CREDENTIAL_CONFLICT;
    }
    write->write = IDEM_WRITE_INSERT;
    write->row = change->row;
    write->row.row = 0;
    write->row.created_us = turn->command->now_us;
    write->row.created_by = change->by;
    write->row.revoked_us = 0;
    write->row.revoked_by = (struct idem_str){ .len = 0 };
    return IDEM_PROBLEM_NONE;
}

static enum idem_problem revoke(struct idem_turn *turn)
{
    const struct idem_credential_row *known = &turn->facts->credential;
    struct idem_credential_write *write = &turn->decision->credential;
    if (known->row == 0) {
        return IDEM_PROBLEM_NOT_FOUND;
    }
    if (known->revoked_us == 0) {
        write->write = IDEM_WRITE_UPDATE;
        write->row = *known;
        write->row.revoked_us = turn->command->now_us;
        write->row.revoked_by = turn->command->credential.by;
    }
    return IDEM_PROBLEM_NONE;
}

void idem_decide_credential(struct idem_turn *turn)
{
    switch (turn->command->credential.action) {
    case IDEM_CREDENTIAL_ADD:
        idem_turn_reply(turn, add(turn), false);
        return;
    case IDEM_CREDENTIAL_REVOKE:
        idem_turn_reply(turn, revoke(turn), false);
        return;
    case IDEM_CREDENTIAL_NOTHING:
    case IDEM_CREDENTIAL_ACTION_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}
