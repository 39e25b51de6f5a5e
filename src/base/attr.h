/*
 * attr.h - compiler attributes and the few macros that every layer needs.
 */
#ifndef IDEM_BASE_ATTR_H
#define IDEM_BASE_ATTR_H

#include <stddef.h>

/* The result says whether the call worked; ignoring it is a bug. */
#define IDEM_MUST_CHECK __attribute__((warn_unused_result))

/* Arguments from `first` on are formatted by argument number `text`, both counted from one. */
#define IDEM_PRINTF(text, first) __attribute__((format(printf, text, first)))

#define IDEM_CONTAINER_OF(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#define IDEM_ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif /* IDEM_BASE_ATTR_H */
