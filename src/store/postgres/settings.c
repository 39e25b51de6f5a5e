/*
 * What needs no server and no libpq: defaults, and which text is a URL.
 */
#include "base/clock.h"
#include "base/text.h"
#include "store/postgres/postgres.h"
#include "store/postgres/url.h"

#define WAIT_US      (5 * IDEM_US_PER_SECOND)
#define LOCK_WAIT_US (250 * IDEM_US_PER_MS)
#define SILENCE_US   (15 * IDEM_US_PER_SECOND)

struct idem_postgres_settings idem_postgres_settings_default(const char *url)
{
    return (struct idem_postgres_settings){
        .url = url,
        .writers = 4,
        .readers = 2,
        .wait_us = WAIT_US,
        .lock_wait_us = LOCK_WAIT_US,
        .silence_us = SILENCE_US,
    };
}

bool idem_postgres_url_is(const char *text)
{
    struct idem_str url = idem_str_from(text);
    return idem_str_starts(url, IDEM_STR("postgres://")) ||
           idem_str_starts(url, IDEM_STR("postgresql://"));
}
