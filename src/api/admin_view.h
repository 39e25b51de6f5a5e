/*
 * admin_view.h - what operators are shown: docs/admin.md is the contract.
 *
 * No merchant's key, no secret, no digest and no provider request is in any of it.
 */
#ifndef IDEM_API_ADMIN_VIEW_H
#define IDEM_API_ADMIN_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "api/credentials.h"
#include "api/operation.h"
#include "base/text.h"
#include "core/credential.h"
#include "store/store.h"

/* Ends the array of a page, and the page: the cursor of the next one is the last row's. */
void idem_admin_next_page_print(bool more, int64_t last_row, struct idem_buf *buf);

/* A page of entries. `now_us` (wall) tells whose lease lives. */
void idem_admin_list_print(const struct idem_read *read, int64_t now_us, struct idem_buf *buf);

struct idem_admin_operation {
    struct idem_operation operation;
    const struct idem_case *cases; /* Newest first. */
    size_t case_count;
    int64_t now_us; /* Wall. */
};

void idem_admin_operation_print(const struct idem_admin_operation *view, struct idem_buf *buf);

void idem_admin_summary_print(const struct idem_summary *summary,
                              const struct idem_histogram *time_to_truth_us,
                              bool restored,
                              struct idem_buf *buf);

void idem_admin_restored_print(const struct idem_api_gauges *gauges, struct idem_buf *buf);

/* One of the store's. */
void idem_admin_credential_print(const struct idem_credential_row *row, struct idem_buf *buf);

/* A page of the store's; `configured` (may be NULL) are put before them. */
void idem_admin_credentials_print(const struct idem_read *read,
                                  const struct idem_credentials *configured,
                                  struct idem_buf *buf);

#endif /* IDEM_API_ADMIN_VIEW_H */
