/*
 * bug.h - assertions, on in every build.
 *
 * An assertion is for what only a wrong program can make false. It is never used on input, disk,
 * network, clock or what a provider says: those are answers, and answers are handled.
 */
#ifndef IDEM_BASE_BUG_H
#define IDEM_BASE_BUG_H

/* Says where and what, then aborts: a core with a bug in it must not touch money. */
void idem_bug(const char *file, int line, const char *condition) __attribute__((noreturn, cold));

#define IDEM_ASSERT(condition) ((condition) ? (void)0 : idem_bug(__FILE__, __LINE__, #condition))

#define IDEM_UNREACHABLE() idem_bug(__FILE__, __LINE__, "unreachable")

#endif /* IDEM_BASE_BUG_H */
