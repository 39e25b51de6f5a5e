/*
 * told.h - webhooks, messages and deliveries, written straight through a store's rows port.
 *
 * A number or letter is one id. Each fails the test if it cannot.
 */
#ifndef IDEM_TEST_CONFORM_TOLD_H
#define IDEM_TEST_CONFORM_TOLD_H

#include "unit/store/fixture.h"

#define ALL_TYPES (~UINT64_C(0) >> 1)

/* A store of each kind, as `*state`. */
int setup_memory(void **state);
int setup_sqlite(void **state);
int setup_postgres(void **state);
int suite_teardown(void **state);

struct idem_uid uid(uint32_t number);
/* Rows of the inbox of SQLite or PostgreSQL, as who looks into it with SQL sees them. */
long long inbox_count(struct fixture *fixture, const char *where);
bool sweep(struct idem_rows *rows, int64_t before_us); /* There may be more. */
bool event_is_seen(struct idem_rows *rows, struct idem_str entry, struct idem_str event_id);
struct idem_webhook_write webhook_named(uint32_t id, const char *principal);
int64_t webhook_add(struct idem_rows *rows, uint32_t id, const char *principal);
struct idem_webhook webhook_find(struct idem_rows *rows, uint32_t id);
void webhook_disable(struct idem_rows *rows, uint32_t id);
struct idem_message message_named(uint32_t id, uint32_t payment);
void message_add(struct idem_rows *rows, uint32_t id, uint32_t payment);
struct idem_delivery delivery_find(struct idem_rows *rows, uint32_t message, uint32_t webhook);
void delivery_write(struct idem_rows *rows, struct idem_delivery delivery);
void delivery_end(struct idem_rows *rows,
                  uint32_t message,
                  uint32_t webhook,
                  enum idem_delivery_state state);

#endif /* IDEM_TEST_CONFORM_TOLD_H */
