/*
 * merchant.h - those who are told: webhooks of the principals, a port that posts to them, and what
 * has arrived there.
 *
 * An operator adds a webhook for a principal at the beginning, and enables it again when it was
 * disabled. The port is one process's end of the wire: a post that left arrives, or not, whether
 * the process lives or not.
 */
#ifndef IDEM_SIM_MERCHANT_H
#define IDEM_SIM_MERCHANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "outbox/post.h"

struct sim_instance;
struct sim_world;

#define SIM_PRINCIPALS 2

/* One message that arrived, however often. */
struct sim_arrival {
    struct sim_arrival *next;
    struct idem_uid message_id;
    uint64_t times;
};

struct sim_merchant {
    struct sim_world *world;
    struct idem_str principal;
    struct idem_uid webhook_id;
    bool wants;    /* It has a webhook in this run. */
    bool is_told;  /* The webhook is durable and not disabled, as the auditor saw it last. */
    bool was_told; /* And it has always been since the first commit. */
    bool asks;     /* A command about it is under way. */
    struct sim_arrival *arrivals;
};

struct sim_merchants {
    struct sim_merchant all[SIM_PRINCIPALS];
};

struct sim_post_port;

void sim_merchants_init(struct sim_merchants *merchants, struct sim_world *world);

/* Their webhooks are looked after from now on, also when all is healed. */
void sim_merchants_begin(struct sim_merchants *merchants);

/* NULL: nobody of that name. */
struct sim_merchant *sim_merchant_of(struct sim_merchants *merchants, struct idem_str principal);

/* How often the message has arrived there. */
uint64_t sim_merchant_heard(const struct sim_merchant *merchant, struct idem_uid message_id);

/* A command about a webhook came back. */
void sim_merchant_replied(struct sim_world *world, struct idem_task *task, bool heard);

/* Lives as long as the run. */
struct sim_post_port *sim_post_open(struct sim_instance *instance);
struct idem_post_port *sim_post_base(struct sim_post_port *port);

/* Its process is dead: every call ends. */
void sim_post_die(struct sim_post_port *port);

#endif /* IDEM_SIM_MERCHANT_H */
