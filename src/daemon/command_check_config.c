/*
 * idem check-config: whether `idem serve` would accept a configuration, and what can be set.
 *
 * Nothing is opened but the file. It is read and checked by the same two calls as in `idem serve`,
 * so both say the same. The list of settings is printed from the tables that read the file: a
 * setting that is missing in it cannot be set. tools/check-man compares it with the documents.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "cli/output.h"
#include "daemon/commands.h"
#include "daemon/config.h"
#include "daemon/config_group.h"
#include "daemon/settings.h"

#define CHOICES_LEN_MAX 256

static const char help[] =
    "usage: idem check-config FILE\n"
    "       idem check-config --defaults\n"
    "\n"
    "Says whether `idem serve --config FILE` would accept the configuration; starts nothing.\n"
    "\n"
    "      --defaults  every setting, one a line: NAME TYPE MIN MAX DEFAULT; - is none\n"
    "  -h, --help      this text\n"
    "\n"
    "Exit status: 0 it can be used, 3 it is refused, 2 command line, 1 anything else.\n";

/* One element in each list, so that each has the values which it would begin with. */
static const char least[] = "credentials = ({}); providers = ({}); routes = ({});";

struct options {
    const char *file;
    bool defaults;
    bool help;
};

static bool options_parse(int argc, char **argv, struct options *ret_options)
{
    static const struct option long_options[] = {
        { "defaults", no_argument, NULL, 'd' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct options options = { .file = NULL };
    int letter;
    while ((letter = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (letter == 'd') {
            options.defaults = true;
        } else if (letter == 'h') {
            options.help = true;
        } else {
            return false; /* getopt has said what is wrong. */
        }
    }
    int files = argc - optind;
    if (!options.help && files != (options.defaults ? 0 : 1)) {
        (void)fputs("idem check-config: give either one FILE or --defaults\n", stderr);
        return false;
    }
    options.file = files == 1 ? argv[optind] : NULL;
    *ret_options = options;
    return true;
}

static int number_print(const struct idem_setting *setting, const void *place)
{
    int64_t number;
    memcpy(&number, place, sizeof(number));
    return printf("number %" PRId64 " %" PRId64 " %" PRId64, setting->min, setting->max,
                  number / setting->scale);
}

static int text_print(const struct idem_setting *setting, const void *place)
{
    const char *text;
    memcpy(&text, place, sizeof(text));
    if (text == NULL) {
        text = "-";
    } else if (text[0] == '\0') {
        text = "\"\"";
    }
    return printf("text 1 %" PRId64 " %s", setting->max, text);
}

static int choice_print(const struct idem_setting *setting, const void *place)
{
    unsigned chosen;
    memcpy(&chosen, place, sizeof(chosen));
    char memory[CHOICES_LEN_MAX];
    struct idem_buf list;
    idem_buf_init(&list, memory, sizeof(memory));
    for (size_t i = 0; setting->choices[i] != NULL; i++) {
        idem_buf_printf(&list, "%s%s", i == 0 ? "" : "|", setting->choices[i]);
    }
    IDEM_ASSERT(!list.full);
    return printf("choice %.*s - %s", (int)list.len, list.data, setting->choices[chosen]);
}

static int value_print(const struct idem_setting *setting, const void *target)
{
    const char *place = (const char *)target + setting->offset;
    bool flag;
    switch (setting->kind) {
    case IDEM_SETTING_BOOL:
        memcpy(&flag, place, sizeof(flag));
        return printf("bool - - %s", flag ? "true" : "false");
    case IDEM_SETTING_NUMBER:
        return number_print(setting, place);
    case IDEM_SETTING_TEXT:
        return text_print(setting, place);
    case IDEM_SETTING_CHOICE:
        return choice_print(setting, place);
    case IDEM_SETTING_DIGEST:
        return printf("digest 64 64 -");
    case IDEM_SETTING_GROUP:
        return printf("group - - -");
    case IDEM_SETTING_LIST:
        return printf("list - - -");
    case IDEM_SETTING_NONE:
    case IDEM_SETTING_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static bool group_print(const struct idem_config_group *group)
{
    for (const struct idem_setting *setting = group->table; setting->name != NULL; setting++) {
        bool printed = printf("%s%s ", group->path, setting->name) > 0 &&
                       value_print(setting, group->target) > 0 && putchar('\n') != EOF;
        if (!printed) {
            return false;
        }
    }
    return true;
}

static bool settings_print(const struct idem_config *config)
{
    struct idem_config_group group;
    for (size_t i = 0; idem_config_group(config, i, &group); i++) {
        if (!group_print(&group)) {
            return false;
        }
    }
    return true;
}

static enum idem_exit defaults_show(struct idem_config *config)
{
    struct idem_error error;
    enum idem_err err = idem_config_parse(config, "defaults", least, &error);
    IDEM_ASSERT(err == IDEM_OK); /* The text is ours. */
    return idem_output_end(settings_print(config) ? IDEM_EXIT_OK : IDEM_EXIT_OTHER,
                           "nothing was changed");
}

static enum idem_exit file_check(struct idem_config *config, const char *file)
{
    struct idem_error error;
    enum idem_err err = idem_config_read(config, file, &error);
    if (err == IDEM_OK) {
        err = idem_config_check(config, &error);
    }
    if (err != IDEM_OK) {
        (void)fprintf(stderr, "idem check-config: %s\n", error.text);
        return IDEM_EXIT_CONFIG;
    }
    return puts("The configuration can be used.") < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
}

enum idem_exit idem_command_check_config(int argc, char **argv)
{
    struct options options;
    if (!options_parse(argc, argv, &options)) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    if (options.help) {
        return fputs(help, stdout) < 0 ? IDEM_EXIT_OTHER : IDEM_EXIT_OK;
    }

    struct idem_error error;
    struct idem_config *config = NULL;
    if (idem_config_create(&config, &error) != IDEM_OK) {
        (void)fprintf(stderr, "idem check-config: %s\n", error.text);
        return IDEM_EXIT_OTHER;
    }
    enum idem_exit status =
        options.defaults ? defaults_show(config) : file_check(config, options.file);
    idem_config_destroy(config);
    return status;
}
