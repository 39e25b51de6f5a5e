/*
 * run_internal.h - the two halves of one command inside the open transaction. Stays in store.
 */
#ifndef IDEM_STORE_RUN_INTERNAL_H
#define IDEM_STORE_RUN_INTERNAL_H

#include "store/run.h"

/* Into run->facts; text into run->kept. */
enum idem_rows_step idem_run_facts_fetch(struct idem_run *run, const struct idem_command *command);

/* The rows of run->decision, under their guards. */
enum idem_rows_step idem_run_apply(struct idem_run *run, int64_t now_us);

#endif /* IDEM_STORE_RUN_INTERNAL_H */
