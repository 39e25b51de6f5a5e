/*
 * A URL is taken apart by libpq's own parser, so that what is said about it is what libpq will do.
 * Its messages quote the text that it could not understand, which may be a password: they are
 * dropped.
 */
#include "store/postgres/url.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/text.h"

/* Empty if the URL does not say it. */
static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (size_t i = 0; options[i].keyword != NULL; i++) {
        if (strcmp(options[i].keyword, keyword) == 0) {
            return options[i].val != NULL ? options[i].val : "";
        }
    }
    return "";
}

static const char *const encrypting[] = { "require", "verify-ca", "verify-full", NULL };
static const char *const primary[] = { "read-write", "primary", NULL };

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(word, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

/* Hosts and ports are two lists of the same length, or one port is everybody's. */
static void label_print(const PQconninfoOption *options, struct idem_buf *label)
{
    struct idem_str hosts = idem_str_from(value_of(options, "host"));
    struct idem_str ports = idem_str_from(value_of(options, "port"));
    hosts = hosts.len > 0 ? hosts : idem_str_from(value_of(options, "hostaddr"));
    bool one_port = idem_str_find(ports, ',') == ports.len;
    struct idem_str port = ports;
    idem_buf_add(label, IDEM_STR("postgres://"));
    for (size_t i = 0; i == 0 || hosts.len > 0; i++) {
        struct idem_str host = idem_str_next(&hosts, ',');
        port = one_port ? port : idem_str_next(&ports, ',');
        idem_buf_printf(label, "%s%.*s", i > 0 ? "," : "", (int)host.len, host.data);
        if (port.len > 0) {
            idem_buf_printf(label, ":%.*s", (int)port.len, port.data);
        }
    }
    idem_buf_printf(label, "/%s", value_of(options, "dbname"));
}

static void url_note(const PQconninfoOption *options, struct idem_postgres_url *ret_url)
{
    struct idem_postgres_url url = {
        .has_password =
            value_of(options, "password")[0] != '\0' || value_of(options, "sslpassword")[0] != '\0',
        .has_service = value_of(options, "service")[0] != '\0',
        .encrypts = is_one_of(value_of(options, "sslmode"), encrypting),
        .finds_primary = is_one_of(value_of(options, "target_session_attrs"), primary),
    };
    const char *addresses = value_of(options, "hostaddr");
    const char *hosts = addresses[0] != '\0' ? addresses : value_of(options, "host");
    (void)snprintf(url.hosts, sizeof(url.hosts), "%s", hosts); /* The URL has less. */
    struct idem_buf label;
    idem_buf_init(&label, url.label, sizeof(url.label) - 1);
    label_print(options, &label); /* What does not fit is left out: it is for people. */
    url.label[label.len] = '\0';
    *ret_url = url;
}

enum idem_err idem_postgres_url_read(const char *text,
                                     struct idem_postgres_url *ret_url,
                                     struct idem_error *reterr)
{
    if (strlen(text) >= IDEM_POSTGRES_URL_MAX) {
        return idem_error_set(reterr, IDEM_E_INVALID, "the database's URL is too long");
    }
    PQconninfoOption *options = PQconninfoParse(text, NULL);
    if (options == NULL) {
        return idem_error_set(reterr, IDEM_E_INVALID,
                              "the database's URL cannot be understood: "
                              "postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full, special "
                              "characters as %%XX");
    }
    url_note(options, ret_url);
    PQconninfoFree(options);
    return IDEM_OK;
}
