/*
 * fault.h - why a request is refused before anything was looked up: which problem, and the sentence
 * that says what exactly is wrong with these bytes.
 */
#ifndef IDEM_API_FAULT_H
#define IDEM_API_FAULT_H

#include "base/attr.h"
#include "base/text.h"
#include "core/problem.h"

#define IDEM_FAULT_TEXT_MAX 256

struct idem_fault {
    enum idem_problem problem;
    size_t len;
    char text[IDEM_FAULT_TEXT_MAX]; /* UTF-8; never a key, a secret or a credential. */
};

/* Fills the fault. Returns false, so that a reader can end with it. */
bool idem_fault_set(struct idem_fault *fault, enum idem_problem problem, const char *format, ...)
    IDEM_PRINTF(3, 4);

struct idem_str idem_fault_text(const struct idem_fault *fault);

#endif /* IDEM_API_FAULT_H */
