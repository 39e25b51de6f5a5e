/*
 * OpenSSL, call by call; whatever fails is a bug of the test.
 */
#include "unit/transport/certificate.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bug.h"

static void extension_add(X509 *x509, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, x509, x509, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    IDEM_ASSERT(extension != NULL);
    int rc = X509_add_ext(x509, extension, -1);
    IDEM_ASSERT(rc == 1);
    X509_EXTENSION_free(extension);
}

static void file_write(struct certificate *certificate)
{
    (void)snprintf(certificate->ca_file, sizeof(certificate->ca_file), "/tmp/idem-test-XXXXXX");
    int fd = mkstemp(certificate->ca_file);
    IDEM_ASSERT(fd >= 0);
    FILE *file = fdopen(fd, "w");
    IDEM_ASSERT(file != NULL);
    int rc = PEM_write_X509(file, certificate->x509);
    IDEM_ASSERT(rc == 1);
    rc = fclose(file);
    IDEM_ASSERT(rc == 0);
}

void certificate_make(struct certificate *certificate, const char *alt_name)
{
    *certificate = (struct certificate){ .key = EVP_EC_gen("P-256"), .x509 = X509_new() };
    X509 *x509 = certificate->x509;
    IDEM_ASSERT(certificate->key != NULL);
    IDEM_ASSERT(x509 != NULL);
    X509_NAME *name = X509_get_subject_name(x509);

    int rc = X509_set_version(x509, 2) & ASN1_INTEGER_set(X509_get_serialNumber(x509), 1) &
             X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                        (const unsigned char *)"idem test", -1, -1, 0);
    IDEM_ASSERT(rc == 1);
    bool dated = X509_gmtime_adj(X509_getm_notBefore(x509), -3600) != NULL &&
                 X509_gmtime_adj(X509_getm_notAfter(x509), 3600) != NULL;
    IDEM_ASSERT(dated);
    rc = X509_set_issuer_name(x509, name) & X509_set_pubkey(x509, certificate->key);
    IDEM_ASSERT(rc == 1);
    extension_add(x509, NID_basic_constraints, "critical,CA:TRUE");
    extension_add(x509, NID_subject_alt_name, alt_name);
    rc = X509_sign(x509, certificate->key, EVP_sha256());
    IDEM_ASSERT(rc > 0);
    file_write(certificate);
}

SSL_CTX *certificate_context(const struct certificate *certificate)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    IDEM_ASSERT(context != NULL);
    int rc = SSL_CTX_use_certificate(context, certificate->x509) &
             SSL_CTX_use_PrivateKey(context, certificate->key);
    IDEM_ASSERT(rc == 1);
    return context;
}

void certificate_free(struct certificate *certificate)
{
    (void)unlink(certificate->ca_file); /* Of a temporary folder: it may have been cleaned. */
    X509_free(certificate->x509);
    EVP_PKEY_free(certificate->key);
}
