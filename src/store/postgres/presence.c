/*
 * Whether a database has a store, asked before anything is made: secrets belong to exactly one
 * store, so nobody makes new ones for a store that is there.
 *
 * The server is checked as for every connection; a connection of its own, closed again.
 */
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgres/rows_internal.h"

static enum idem_err answer(struct idem_postgres_wire *wire,
                            bool *ret_there,
                            struct idem_error *reterr)
{
    PGresult *result = NULL;
    idem_postgres_wire_say(wire, "SELECT (to_regclass('idem.meta') IS NOT NULL)::integer", &result);
    if (idem_postgres_wire_round(wire) != IDEM_POSTGRES_END_OK) {
        return idem_error_set(reterr, IDEM_E_STORE, "cannot look for the database's store: %s",
                              wire->error.text);
    }
    *ret_there = PQntuples(result) > 0 && idem_postgres_number(result, 0, 0) != 0;
    PQclear(result);
    return IDEM_OK;
}

enum idem_err idem_postgres_has_store(const struct idem_postgres_settings *settings,
                                      bool *ret_there,
                                      struct idem_error *reterr)
{
    struct idem_postgres_wire *wire = calloc(1, sizeof(*wire));
    if (wire == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    wire->wait_us = settings->wait_us;
    enum idem_err err = IDEM_OK;
    if (idem_postgres_session_begin(wire, settings) == IDEM_ROWS_OK) {
        err = answer(wire, ret_there, reterr);
    } else {
        err = idem_error_set(reterr, IDEM_E_STORE, "cannot open the database's store: %s",
                             wire->error.text);
    }
    idem_postgres_wire_close(wire);
    free(wire);
    return err;
}
