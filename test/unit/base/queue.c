/*
 * The queue between threads.
 *
 * Goal: whatever threads push comes out once and in the order of its thread; a wait ends when
 * something comes or the queue is closed, and never otherwise.
 *
 * Method: real threads. Nothing sleeps: a test that would wait for ever is ended by its timeout.
 */
#include "base/queue.h"

#include "base/attr.h"
#include "lib/test.h"

#define THREADS 4
#define PUSHES  20000

struct item {
    struct idem_list_node node;
    size_t thread;
    size_t number;
};

struct pusher {
    struct idem_queue *queue;
    struct item *items;
    size_t thread;
};

static struct item items[THREADS][PUSHES];

static void *push_all(void *argument)
{
    struct pusher *pusher = argument;
    for (size_t i = 0; i < PUSHES; i++) {
        pusher->items[i] = (struct item){ .thread = pusher->thread, .number = i };
        idem_queue_push(pusher->queue, &pusher->items[i].node);
    }
    return NULL;
}

static void *close_queue(void *argument)
{
    idem_queue_close(argument);
    return NULL;
}

static size_t take_in_order(struct idem_list *taken, size_t next[THREADS])
{
    size_t count = 0;
    for (struct idem_list_node *node = idem_list_pop(taken); node != NULL;
         node = idem_list_pop(taken)) {
        const struct item *item = IDEM_CONTAINER_OF(node, struct item, node);
        assert_int_equal(item->number, next[item->thread]);
        next[item->thread] += 1;
        count += 1;
    }
    return count;
}

static void what_threads_push_comes_out_once_and_in_order(void **state)
{
    (void)state;
    struct idem_queue queue;
    pthread_t threads[THREADS];
    struct pusher pushers[THREADS];
    size_t next[THREADS] = { 0 };
    idem_queue_init(&queue);
    for (size_t i = 0; i < THREADS; i++) {
        pushers[i] = (struct pusher){ .queue = &queue, .items = items[i], .thread = i };
        assert_int_equal(pthread_create(&threads[i], NULL, push_all, &pushers[i]), 0);
    }
    size_t count = 0;
    while (count < (size_t)THREADS * PUSHES) {
        struct idem_list taken = { .count = 0 };
        assert_true(idem_queue_wait(&queue, &taken));
        assert_true(taken.count > 0);
        count += take_in_order(&taken, next);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(next[i], PUSHES);
    }
    idem_queue_deinit(&queue);
}

static void taking_does_not_wait(void **state)
{
    (void)state;
    struct idem_queue queue;
    struct idem_list taken = { .count = 0 };
    struct item first = { .number = 0 };
    struct item second = { .number = 1 };
    idem_queue_init(&queue);
    idem_queue_take(&queue, &taken);
    assert_int_equal(taken.count, 0);
    idem_queue_push(&queue, &first.node);
    idem_queue_take(&queue, &taken);
    idem_queue_push(&queue, &second.node);
    idem_queue_take(&queue, &taken);
    assert_int_equal(taken.count, 2);
    assert_ptr_equal(taken.first, &first.node);
    assert_ptr_equal(taken.last, &second.node);
    idem_queue_deinit(&queue);
}

static void closing_ends_a_wait_and_loses_nothing(void **state)
{
    (void)state;
    struct idem_queue queue;
    struct idem_list taken = { .count = 0 };
    struct item item = { .number = 0 };
    pthread_t thread;
    idem_queue_init(&queue);
    assert_int_equal(pthread_create(&thread, NULL, close_queue, &queue), 0);
    assert_false(idem_queue_wait(&queue, &taken));
    assert_int_equal(pthread_join(thread, NULL), 0);

    idem_queue_push(&queue, &item.node);
    assert_true(idem_queue_wait(&queue, &taken));
    assert_ptr_equal(taken.first, &item.node);
    assert_false(idem_queue_wait(&queue, &taken));
    idem_queue_deinit(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_threads_push_comes_out_once_and_in_order),
        cmocka_unit_test(taking_does_not_wait),
        cmocka_unit_test(closing_ends_a_wait_and_loses_nothing),
    };
    return cmocka_run_group_tests_name("base/queue", tests, NULL, NULL);
}
