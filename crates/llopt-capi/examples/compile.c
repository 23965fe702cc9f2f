/* Compiles a kernel with llopt from C and prints the artefact.
 *
 *     compile FILE TARGET [OPTION=VALUE]...
 *
 * FILE holds tile IR as text or bytecode; TARGET is a GPU such as cuda:90 or hip:gfx942. Metadata
 * and diagnostics go to standard error. The exit status is that of the compilation.
 *
 *     cc compile.c -lllopt -o compile
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llopt.h"

/* The contents of a file, or null. */
static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *contents = NULL;
    size_t room = 0, count = 0;
    if (!file)
        return NULL;
    do {
        char *more = NULL;
        if (room <= SIZE_MAX / 2)
            more = realloc(contents, room = room ? 2 * room : 4096);
        if (!more) {
            free(contents);
            fclose(file);
            return NULL;
        }
        contents = more;
        count += fread(contents + count, 1, room - count, file);
    } while (count == room);
    fclose(file);
    *size = count;
    return contents;
}

/* What the compiler says about the kernel, one line for each diagnostic and note. */
static void print_diagnostics(const llopt_compilation_t *compilation)
{
    static const char *const severities[] = {"error", "warning", "remark", "note"};
    size_t count = llopt_diagnostic_count(compilation);
    for (size_t index = 0; index < count; ++index) {
        llopt_diagnostic_t said = {.size = sizeof said};
        if (llopt_diagnostic(compilation, index, &said) != LLOPT_OK)
            continue;
        if (said.file)
            fprintf(stderr, "%s:%zu:%zu: ", said.file, said.line, said.column);
        fprintf(stderr, "%s: %s\n", severities[said.severity], said.message);
    }
}

/* Hands an argument OPTION=VALUE to the compiler. */
static llopt_status_t set_option(llopt_compiler_t *compiler, char *argument)
{
    char *value = strchr(argument, '=');
    if (!value)
        return llopt_set(compiler, argument, "");
    *value = '\0';
    return llopt_set(compiler, argument, value + 1);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s FILE TARGET [OPTION=VALUE]...\n", argv[0]);
        return LLOPT_MISUSE;
    }
    size_t size;
    char *source = read_file(argv[1], &size);
    if (!source) {
        fprintf(stderr, "cannot read '%s'\n", argv[1]);
        return LLOPT_ENVIRONMENT;
    }

    llopt_compiler_t *compiler;
    llopt_status_t status = llopt_open(LLOPT_ABI_VERSION, &compiler);
    if (status != LLOPT_OK) {
        fprintf(stderr, "llopt %s has another interface than its header\n", llopt_version());
        free(source);
        return status;
    }
    status = llopt_set(compiler, "target", argv[2]);
    for (int index = 3; index < argc && status == LLOPT_OK; ++index)
        status = set_option(compiler, argv[index]);
    if (status != LLOPT_OK) {
        fprintf(stderr, "%s\n", llopt_message(compiler));
        llopt_close(compiler);
        free(source);
        return status;
    }

    llopt_compilation_t *compilation;
    status = llopt_compile(compiler, argv[1], source, size, NULL, &compilation);
    llopt_close(compiler); /* the outcome stays */
    free(source);
    if (status == LLOPT_OK) {
        const void *artifact = llopt_artifact(compilation, &size);
        fwrite(artifact, 1, size, stdout);
        fprintf(stderr, "%s\n", llopt_metadata(compilation));
    } else if (llopt_diagnostic_count(compilation) == 0 && llopt_error(compilation)) {
        fprintf(stderr, "%s\n", llopt_error(compilation));
    }
    print_diagnostics(compilation);
    llopt_release(compilation);
    return status;
}
