/*
 * operation_view.h - an operation of the admin API, as a person reads it.
 */
#ifndef IDEM_CLI_OPERATION_VIEW_H
#define IDEM_CLI_OPERATION_VIEW_H

#include "cli/session.h"
#include "cli/table.h"

/* One cell: an object's amount with its currency, or nothing. */
void idem_operation_view_money(struct idem_table_view *table,
                               const struct idem_json *json,
                               size_t object);

/* Two cells: "ask the provider" and when, of the member "next". */
void idem_operation_view_next(struct idem_table_view *table,
                              const struct idem_json *json,
                              size_t object);

/* The session's document, which is one operation: with attempts, timeline and cases; or as JSON. */
enum idem_exit idem_operation_view_print(const struct idem_session *session);

#endif /* IDEM_CLI_OPERATION_VIEW_H */
