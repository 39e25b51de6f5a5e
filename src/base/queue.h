/*
 * queue.h - the one place where threads meet.
 *
 * A queue of intrusive nodes. Any thread may push; one thread takes, all at once. A node is the
 * queue's from push to take. The queue is bounded by what its users own, not by itself: nodes are
 * members of structs that were allocated from a limit.
 */
#ifndef IDEM_BASE_QUEUE_H
#define IDEM_BASE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"

struct idem_queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct idem_list nodes;
    bool closed;
};

void idem_queue_init(struct idem_queue *queue);
void idem_queue_deinit(struct idem_queue *queue);

void idem_queue_push(struct idem_queue *queue, struct idem_list_node *node);

/* Moves all nodes to the end of `ret_nodes` without waiting. */
void idem_queue_take(struct idem_queue *queue, struct idem_list *ret_nodes);

/* Waits until there is something or the queue is closed. False: closed and empty. */
bool idem_queue_wait(struct idem_queue *queue, struct idem_list *ret_nodes);

/* Ends every wait. What was pushed can still be taken. */
void idem_queue_close(struct idem_queue *queue);

#endif /* IDEM_BASE_QUEUE_H */
