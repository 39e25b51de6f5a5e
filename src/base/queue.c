/*
 * A mutex, a condition and a list. The taker empties the whole list in one step, which is what
 * makes batches: everything that queued while it worked comes out together.
 */
#include "base/queue.h"

#include "base/bug.h"

/* These calls fail only when the program uses them wrongly. */
static void must(int rc)
{
    IDEM_ASSERT(rc == 0);
}

void idem_queue_init(struct idem_queue *queue)
{
    *queue = (struct idem_queue){ .closed = false };
    must(pthread_mutex_init(&queue->mutex, NULL));
    must(pthread_cond_init(&queue->filled, NULL));
}

void idem_queue_deinit(struct idem_queue *queue)
{
    IDEM_ASSERT(queue->nodes.count == 0);
    must(pthread_cond_destroy(&queue->filled));
    must(pthread_mutex_destroy(&queue->mutex));
}

void idem_queue_push(struct idem_queue *queue, struct idem_list_node *node)
{
    must(pthread_mutex_lock(&queue->mutex));
    idem_list_push(&queue->nodes, node);
    must(pthread_cond_signal(&queue->filled));
    must(pthread_mutex_unlock(&queue->mutex));
}

void idem_queue_take(struct idem_queue *queue, struct idem_list *ret_nodes)
{
    must(pthread_mutex_lock(&queue->mutex));
    idem_list_join(ret_nodes, &queue->nodes);
    must(pthread_mutex_unlock(&queue->mutex));
}

bool idem_queue_wait(struct idem_queue *queue, struct idem_list *ret_nodes)
{
    must(pthread_mutex_lock(&queue->mutex));
    while (queue->nodes.count == 0 && !queue->closed) {
        must(pthread_cond_wait(&queue->filled, &queue->mutex));
    }
    bool filled = queue->nodes.count > 0;
    idem_list_join(ret_nodes, &queue->nodes);
    must(pthread_mutex_unlock(&queue->mutex));
    return filled;
}

void idem_queue_close(struct idem_queue *queue)
{
    must(pthread_mutex_lock(&queue->mutex));
    queue->closed = true;
    must(pthread_cond_broadcast(&queue->filled));
    must(pthread_mutex_unlock(&queue->mutex));
}
