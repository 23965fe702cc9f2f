/* Calls the interface in all the wrong ways, and in a right one from several threads. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llopt.h"

#define CHECK(condition)                                                      \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

static const char kernel[] =
    "tt.func public @touch(%p: !tt.ptr<i32>) {\n"
    "  %one = arith.constant 1 : i32\n"
    "  tt.store %p, %one : !tt.ptr<i32>\n"
    "  tt.return\n"
    "}\n";

static void null_is_harmless(void)
{
    llopt_compiler_t *compiler;
    llopt_compilation_t *outcome = (llopt_compilation_t *)&compiler;
    llopt_diagnostic_t said = {.size = sizeof said};
    size_t size = 7;

    CHECK(llopt_open(LLOPT_ABI_VERSION, NULL) == LLOPT_MISUSE);
    CHECK(llopt_set(NULL, "target", "cuda:90") == LLOPT_MISUSE);
    CHECK(llopt_message(NULL) == NULL && llopt_cache_key(NULL) == NULL);
    CHECK(llopt_compile(NULL, NULL, kernel, strlen(kernel), NULL, &outcome) == LLOPT_MISUSE);
    CHECK(outcome == NULL);
    CHECK(llopt_status(NULL) == LLOPT_MISUSE);
    CHECK(llopt_artifact(NULL, &size) == NULL && size == 0);
    CHECK(llopt_artifact(NULL, NULL) == NULL);
    CHECK(llopt_kept(NULL, "ttgir", &size) == NULL && size == 0);
    CHECK(llopt_metadata(NULL) == NULL && llopt_timings(NULL) == NULL);
    CHECK(llopt_error(NULL) == NULL && llopt_reproducer(NULL) == NULL);
    CHECK(llopt_unsupported_op(NULL) == NULL && llopt_unsupported_feature(NULL) == NULL);
    CHECK(llopt_diagnostic_count(NULL) == 0);
    CHECK(llopt_diagnostic(NULL, 0, &said) == LLOPT_MISUSE);
    CHECK(llopt_diagnostic(NULL, 0, NULL) == LLOPT_MISUSE);
    CHECK(llopt_option_name(llopt_option_count()) == NULL);
    CHECK(llopt_option_help(SIZE_MAX) == NULL);
    llopt_release(NULL);
    llopt_close(NULL);

    CHECK(llopt_open(LLOPT_ABI_VERSION, &compiler) == LLOPT_OK);
    CHECK(llopt_set(compiler, "target", "cuda:90") == LLOPT_OK);
    CHECK(llopt_compile(compiler, NULL, NULL, 0, NULL, &outcome) == LLOPT_MISUSE);
    CHECK(llopt_compile(compiler, NULL, kernel, SIZE_MAX, NULL, &outcome) == LLOPT_MISUSE);
    CHECK(llopt_compile(compiler, NULL, kernel, strlen(kernel), NULL, NULL) == LLOPT_MISUSE);
    llopt_close(compiler);
}

/* Checkers of memory execute some fifty times slower, beyond the default budget of processor time. */
static const char *const patience = "600000";

static void mistakes_are_explained(void)
{
    llopt_compiler_t *compiler;
    llopt_compilation_t *outcome;
    llopt_diagnostic_t said = {.size = sizeof said};

    CHECK(llopt_open(LLOPT_ABI_VERSION + 1, &compiler) == LLOPT_MISUSE && compiler == NULL);
    CHECK(llopt_open(LLOPT_ABI_VERSION, &compiler) == LLOPT_OK);
    CHECK(llopt_set(compiler, "max_time", patience) == LLOPT_OK);
    CHECK(llopt_set(compiler, "num_warps", "four") == LLOPT_MISUSE);
    CHECK(strstr(llopt_message(compiler), "takes a number") != NULL);
    CHECK(llopt_set(compiler, "\xff", "4") == LLOPT_MISUSE);
    CHECK(strstr(llopt_message(compiler), "UTF-8") != NULL);
    CHECK(llopt_set(compiler, NULL, NULL) == LLOPT_MISUSE);
    CHECK(llopt_set(compiler, "num_warps", "8") == LLOPT_OK);
    CHECK(llopt_message(compiler) == NULL);

    CHECK(llopt_compile(compiler, NULL, kernel, strlen(kernel), NULL, &outcome) == LLOPT_MISUSE);
    CHECK(strstr(llopt_error(outcome), "'target' is not set") != NULL);
    llopt_release(outcome);

    /* What was set before the target stays. */
    CHECK(llopt_cache_key(compiler) == NULL);
    CHECK(llopt_set(compiler, "target", "hip:gfx942") == LLOPT_OK);
    CHECK(strstr(llopt_cache_key(compiler), "\nnum_warps=8\n") != NULL);
    CHECK(llopt_set(compiler, "keep", "ttgir") == LLOPT_OK);
    CHECK(llopt_compile(compiler, NULL, kernel, strlen(kernel), "amdgcn", &outcome) == LLOPT_OK);
    CHECK(strstr(llopt_metadata(outcome), "\"num_warps\":8") != NULL);
    CHECK(llopt_error(outcome) == NULL && llopt_diagnostic_count(outcome) == 0);
    CHECK(llopt_kept(outcome, "ttgir", NULL) != NULL);
    CHECK(llopt_kept(outcome, "llvm", NULL) == NULL && llopt_kept(outcome, NULL, NULL) == NULL);
    llopt_release(outcome);

    CHECK(llopt_compile(compiler, NULL, kernel, strlen(kernel), "ptx", &outcome) == LLOPT_MISUSE);
    CHECK(strcmp(llopt_error(outcome), "error: there is no ptx for hip:gfx942") == 0);
    llopt_release(outcome);

    /* Half a kernel, text that is not UTF-8, an empty one. */
    CHECK(llopt_compile(compiler, "half", kernel, 60, NULL, &outcome) == LLOPT_INVALID_INPUT);
    CHECK(llopt_diagnostic_count(outcome) > 0);
    CHECK(llopt_diagnostic(outcome, 0, &said) == LLOPT_OK);
    CHECK(said.severity == LLOPT_ERROR && said.depth == 0);
    CHECK(strcmp(said.file, "half") == 0 && said.line > 0 && said.column > 0);
    CHECK(llopt_diagnostic(outcome, 1000, &said) == LLOPT_MISUSE);
    said.size = 1;
    CHECK(llopt_diagnostic(outcome, 0, &said) == LLOPT_MISUSE);
    CHECK(llopt_artifact(outcome, NULL) == NULL && llopt_metadata(outcome) == NULL);
    llopt_release(outcome);
    CHECK(llopt_compile(compiler, NULL, "\xff", 1, NULL, &outcome) == LLOPT_INVALID_INPUT);
    llopt_release(outcome);
    CHECK(llopt_compile(compiler, NULL, "", 0, NULL, &outcome) != LLOPT_BUG);
    llopt_release(outcome);
    llopt_close(compiler);
}

/* One compilation into a copy of the artefact. */
static void *compile(void *compiler)
{
    llopt_compilation_t *outcome;
    size_t size;
    CHECK(llopt_compile(compiler, NULL, kernel, strlen(kernel), NULL, &outcome) == LLOPT_OK);
    const void *artifact = llopt_artifact(outcome, &size);
    char *copy = calloc(size + 1, 1);
    CHECK(copy != NULL);
    memcpy(copy, artifact, size);
    llopt_release(outcome);
    return copy;
}

static void threads_share_a_compiler(void)
{
    enum { COUNT = 4 };
    llopt_compiler_t *compiler;
    pthread_t threads[COUNT];
    CHECK(llopt_open(LLOPT_ABI_VERSION, &compiler) == LLOPT_OK);
    CHECK(llopt_set(compiler, "target", "cuda:90") == LLOPT_OK);
    CHECK(llopt_set(compiler, "max_time", patience) == LLOPT_OK);
    char *expected = compile(compiler);
    for (int index = 0; index < COUNT; ++index)
        CHECK(pthread_create(&threads[index], NULL, compile, compiler) == 0);
    for (int index = 0; index < COUNT; ++index) {
        void *copy;
        CHECK(pthread_join(threads[index], &copy) == 0);
        CHECK(strcmp(copy, expected) == 0);
        free(copy);
    }
    free(expected);
    llopt_close(compiler);
}

int main(void)
{
    null_is_harmless();
    mistakes_are_explained();
    threads_share_a_compiler();
    puts("all as documented");
    return 0;
}
