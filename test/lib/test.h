/*
 * test.h - what every test begins with: cmocka and its prerequisites, and text expectations.
 */
#ifndef IDEM_TEST_LIB_TEST_H
#define IDEM_TEST_LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

/* `actual` is a struct idem_str, `expected` a terminated string. Shows both on failure. */
#define EXPECT_TEXT(actual, expected) expect_text((actual), (expected), __FILE__, __LINE__)

static inline void expect_text(struct idem_str actual,
                               const char *expected,
                               const char *file,
                               int line)
{
    if (!idem_str_equal(actual, idem_str_from(expected))) {
        print_error("%s:%d: expected\n%s\ngot\n%.*s\n", file, line, expected, (int)actual.len,
                    actual.data);
        _fail(file, line);
    }
}

#endif /* IDEM_TEST_LIB_TEST_H */
