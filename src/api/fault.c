/*
 * A sentence that does not fit is left out whole: the problem's own text still says what to do, and
 * half a sentence could end inside a character.
 */
#include "api/fault.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/bug.h"

bool idem_fault_set(struct idem_fault *fault, enum idem_problem problem, const char *format, ...)
{
    va_list arguments;
    IDEM_ASSERT(problem > IDEM_PROBLEM_NONE);
    va_start(arguments, format);
    int len = vsnprintf(fault->text, sizeof(fault->text), format, arguments);
    va_end(arguments);
    bool fits = len > 0 && (size_t)len < sizeof(fault->text);
    fault->problem = problem;
    fault->len = fits ? (size_t)len : 0;
    return false;
}

struct idem_str idem_fault_text(const struct idem_fault *fault)
{
    return (struct idem_str){ .data = fault->text, .len = fault->len };
}
