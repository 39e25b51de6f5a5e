/*
 * certificate.h - a certificate made on the spot, which is its own issuer.
 */
#ifndef IDEM_TEST_UNIT_TRANSPORT_CERTIFICATE_H
#define IDEM_TEST_UNIT_TRANSPORT_CERTIFICATE_H

#include <openssl/ssl.h>

struct certificate {
    EVP_PKEY *key;
    X509 *x509;
    char ca_file[32]; /* It again, for a client that shall trust it. */
};

/* `alt_name` as OpenSSL writes it: "IP:127.0.0.1", "DNS:bank.example". Valid for an hour. */
void certificate_make(struct certificate *certificate, const char *alt_name);

/* A server's context that shows it. */
SSL_CTX *certificate_context(const struct certificate *certificate);

void certificate_free(struct certificate *certificate);

#endif /* IDEM_TEST_UNIT_TRANSPORT_CERTIFICATE_H */
