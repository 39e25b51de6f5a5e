/*
 * request.h - a request for tests, made of a line of text: "GET /path?query" and header fields
 * "Name: value", one a line, as the server would hand it over.
 */
#ifndef IDEM_TEST_UNIT_API_REQUEST_H
#define IDEM_TEST_UNIT_API_REQUEST_H

#include "lib/test.h"
#include "net/server.h"

static inline struct idem_net_request request_make(const char *line, const char *fields)
{
    struct idem_net_request request = { .request_no = 1 };
    struct idem_str target = idem_str_from(line);
    request.method = idem_str_next(&target, ' ');
    request.path = idem_str_next(&target, '?');
    request.query = target;
    struct idem_str rest = idem_str_from(fields);
    while (rest.len > 0) {
        struct idem_str value = idem_str_next(&rest, '\n');
        struct idem_net_header *header = &request.headers[request.header_count];
        header->name = idem_str_next(&value, ':');
        header->value = idem_str_trim(value);
        request.header_count += 1;
    }
    return request;
}

#endif /* IDEM_TEST_UNIT_API_REQUEST_H */
