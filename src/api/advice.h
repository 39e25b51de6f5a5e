/*
 * advice.h - what every problem means for the money, and what to do next, in a sentence or two.
 */
#ifndef IDEM_API_ADVICE_H
#define IDEM_API_ADVICE_H

#include "base/text.h"
#include "core/problem.h"

/* The last part of every problem's `detail`. Not for NONE. */
struct idem_str idem_advice_text(enum idem_problem problem);

#endif /* IDEM_API_ADVICE_H */
