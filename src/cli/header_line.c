/*
 * What a credential is called differs from API to API; the list has the names in common use, and
 * whoever names another one by --credential-header adds it.
 */
#include "cli/header_line.h"

#include <string.h>

#include "base/bug.h"

static const char *const credential_names[] = { "Authorization", "Proxy-Authorization", "Cookie",
                                                "X-API-Key" };

struct idem_str idem_header_name(struct idem_str line)
{
    return idem_str_slice(line, 0, idem_str_find(line, ':'));
}

bool idem_header_name_valid(struct idem_str name)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < name.len; i++) {
        char byte = name.data[i];
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        bool digit = byte >= '0' && byte <= '9';
        if (!letter && !digit && memchr(marks, byte, sizeof(marks) - 1) == NULL) {
            return false;
        }
    }
    return name.len > 0;
}

static bool names_credential(struct idem_str name, const char *credential_name)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(credential_names); i++) {
        if (idem_str_equal_nocase(name, idem_str_from(credential_names[i]))) {
            return true;
        }
    }
    return credential_name != NULL && idem_str_equal_nocase(name, idem_str_from(credential_name));
}

enum idem_header_fault idem_header_check(struct idem_str line, const char *credential_name)
{
    struct idem_str name = idem_header_name(line);
    if (name.len == line.len) {
        return IDEM_HEADER_NO_COLON;
    }
    if (!idem_header_name_valid(name)) {
        return IDEM_HEADER_NAME;
    }
    if (names_credential(name, credential_name)) {
        return IDEM_HEADER_CREDENTIAL;
    }
    for (size_t i = name.len; i < line.len; i++) {
        unsigned char byte = (unsigned char)line.data[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7F) {
            return IDEM_HEADER_VALUE;
        }
    }
    return IDEM_HEADER_OK;
}

const char *idem_header_fault_text(enum idem_header_fault fault)
{
    switch (fault) {
    case IDEM_HEADER_OK:
        return "is fine";
    case IDEM_HEADER_NO_COLON:
        return "has no colon: write 'Name: value'";
    case IDEM_HEADER_NAME:
        return "does not begin with a header's name: write 'Name: value'";
    case IDEM_HEADER_VALUE:
        return "has a control character in its value";
    case IDEM_HEADER_CREDENTIAL:
        return "would carry a credential: every user of this machine sees a command line, and "
               "headers are written down. Use --credential-file or IDEM_CREDENTIAL, with "
               "--credential-header if it is not a bearer";
    }
    IDEM_UNREACHABLE();
}
