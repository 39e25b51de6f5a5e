/*
 * scene.h - not a test: a process with an engine, a memory store, merchants with webhooks and a
 * worker under test, whose clock only moves when a test moves it.
 *
 * Merchants answer by a script: each webhook has a status that it answers with, or holds what it is
 * posted until the test lets go. Everything that is posted is written down.
 */
#ifndef IDEM_TEST_UNIT_OUTBOX_SCENE_H
#define IDEM_TEST_UNIT_OUTBOX_SCENE_H

#include "outbox/outbox.h"
#include "unit/engine/harness.h"

#define SCENE_WEBHOOKS 4
#define SCENE_POSTED   4096
#define SCENE_POSTS    16 /* The worker's posts_max, unless a test says otherwise. */
#define MINUTE         (60 * SECOND)
#define HOUR           (60 * MINUTE)
#define DAY            (24 * HOUR)

/* What came in at a merchant. */
struct posted {
    size_t webhook; /* Its index. */
    int64_t message_row;
    struct idem_uid message_id;
    enum idem_message_type type;
    int64_t at_us; /* Monotonic. */
};

struct merchant {
    struct idem_webhook webhook;
    uint16_t status;        /* What it answers; 0: nothing, the connection breaks. */
    int64_t retry_after_us; /* And with that. */
    bool holds;             /* Answers only when the test says so. */
    size_t under_way;
    size_t most; /* Posts at the same time. */
};

struct scene {
    struct merchant merchants[SCENE_WEBHOOKS];
    size_t merchant_count;
    struct posted posted[SCENE_POSTED];
    size_t posted_count;
    struct idem_post_port port;
    struct idem_list held;
    struct idem_list answered;
    bool port_full;
    struct idem_outbox_options options;
    struct idem_outbox *outbox;
};

extern struct scene scene;

/* For cmocka: a process, and its end. */
int scene_begin(void **state);
int scene_end(void **state);

/* A webhook of "shop", which answers with 200. Returns its index. */
size_t scene_add_webhook(void);

void scene_start(void); /* A worker with scene.options. */
void scene_go_on(void); /* Until nothing is under way but what is held. */
void scene_pass(int64_t us);

/* Lets go of everything that `webhook` holds, which is answered with its status. */
void scene_let_go(size_t webhook);

/* The command, durable; the problem that it was answered with. */
enum idem_problem scene_run(const struct idem_command *command);

/* A message of type TEST. */
void scene_test(size_t webhook);

/* A payment: two messages, payment.captured and operation.succeeded, in this order. */
void scene_pay(const char *key);

/* The delivery of the n-th message that ever was (from 0) to a webhook; row 0: there is none. */
struct idem_delivery scene_delivery(size_t webhook, size_t message);

/* How often the webhook was posted that message; or any, for SIZE_MAX. */
size_t scene_times(size_t webhook, size_t message);

#endif /* IDEM_TEST_UNIT_OUTBOX_SCENE_H */
