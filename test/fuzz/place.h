/*
 * place.h - where a URL leads, as the reader sees it that requests go through: libcurl's.
 */
#ifndef IDEM_TEST_FUZZ_PLACE_H
#define IDEM_TEST_FUZZ_PLACE_H

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "fuzz/fuzz.h"

#define PLACE_URL_MAX 4096

/* Where libcurl would connect to. */
struct place {
    char scheme[16];
    char host[PLACE_URL_MAX];
    char port[16];
};

static inline void part_copy(CURLU *url, CURLUPart part, char *ret_text, size_t max)
{
    char *text = NULL;
    CURLUcode rc = curl_url_get(url, part, &text, CURLU_DEFAULT_PORT);
    FUZZ_EXPECT(rc == CURLUE_OK && strlen(text) < max);
    (void)snprintf(ret_text, max, "%s", text); /* It fits. */
    curl_free(text);
}

static inline bool part_absent(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    CURLUcode rc = curl_url_get(url, part, &text, 0);
    curl_free(text);
    return rc != CURLUE_OK;
}

/* False: libcurl refuses it, so that nothing is sent. */
static inline bool place_find(struct idem_str text, struct place *ret_place)
{
    char copy[PLACE_URL_MAX];
    FUZZ_EXPECT(text.len < sizeof(copy));
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    CURLU *url = curl_url();
    FUZZ_EXPECT(url != NULL);
    bool taken = curl_url_set(url, CURLUPART_URL, copy, 0) == CURLUE_OK;
    if (taken) {
        part_copy(url, CURLUPART_SCHEME, ret_place->scheme, sizeof(ret_place->scheme));
        part_copy(url, CURLUPART_HOST, ret_place->host, sizeof(ret_place->host));
        part_copy(url, CURLUPART_PORT, ret_place->port, sizeof(ret_place->port));
        FUZZ_EXPECT(part_absent(url, CURLUPART_USER));
        FUZZ_EXPECT(part_absent(url, CURLUPART_PASSWORD));
        FUZZ_EXPECT(part_absent(url, CURLUPART_FRAGMENT));
    }
    curl_url_cleanup(url);
    return taken;
}

/* An address that only this machine has, or its name. */
static inline bool is_this_machine(const char *host)
{
    struct in_addr address;
    if (inet_pton(AF_INET, host, &address) == 1) {
        return ntohl(address.s_addr) >> 24 == 127;
    }
    return strcmp(host, "[::1]") == 0 || strcasecmp(host, "localhost") == 0;
}

#endif /* IDEM_TEST_FUZZ_PLACE_H */
