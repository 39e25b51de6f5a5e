/*
 * random.h - unguessable bytes, through a table so that a simulator can own them.
 */
#ifndef IDEM_BASE_RANDOM_H
#define IDEM_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#define IDEM_RANDOM_POOL 512

struct idem_random;

struct idem_random_ops {
    void (*fill)(struct idem_random *random, void *ret_bytes, size_t size);
};

/* Belongs to one thread. */
struct idem_random {
    const struct idem_random_ops *ops;
    size_t left; /* How many bytes of the pool nobody has had: its first ones. */
    uint8_t pool[IDEM_RANDOM_POOL];
};

void idem_random_fill(struct idem_random *random, void *ret_bytes, size_t size);

/* getrandom(2). It cannot fail once the system has started; if it does, the process stops. */
void idem_random_init_system(struct idem_random *random);

#endif /* IDEM_BASE_RANDOM_H */
