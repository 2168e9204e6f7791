// Simulates DNS for a server into which a test preloads this library. The library reads the
// addresses of host names from a file.
//
// Each line of the file has a host name, the seconds until the answer, and addresses. For a host
// name that its file does not contain, the library calls getaddrinfo() of the C library.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*Lookup)(const char*, const char*, const struct addrinfo*, struct addrinfo**);

static int all_of(char* addresses, const char* service, const struct addrinfo* hints,
                  struct addrinfo** result, Lookup look_up) {
  struct addrinfo numeric = *hints;
  numeric.ai_flags |= AI_NUMERICHOST;
  *result = NULL;
  char* rest = NULL;
  for (char* word = strtok_r(addresses, " \n", &rest); word != NULL;
       word = strtok_r(NULL, " \n", &rest)) {
    const int error = look_up(word, service, &numeric, result);
    if (error != 0) return error;
    while (*result != NULL) result = &(*result)->ai_next;
  }
  return 0;
}

int getaddrinfo(const char* restrict name, const char* restrict service,
                const struct addrinfo* restrict hints, struct addrinfo** restrict result) {
  const Lookup look_up = (Lookup)dlsym(RTLD_NEXT, "getaddrinfo");
  const char* path = getenv("SNOWFLAKE_RESOLVER");
  FILE* file = NULL;
  if (name != NULL && hints != NULL && (hints->ai_flags & AI_NUMERICHOST) == 0 && path != NULL)
    file = fopen(path, "r");
  if (file == NULL) return look_up(name, service, hints, result);
  char line[512];
  char its_name[128];
  unsigned int seconds = 0;
  int length = 0;
  while (fgets(line, sizeof(line), file) != NULL) {
    if (sscanf(line, "%127s %u%n", its_name, &seconds, &length) != 2) continue;
    if (strcmp(its_name, name) != 0) continue;
    fclose(file);
    while (seconds > 0) seconds = sleep(seconds);
    struct addrinfo* found = NULL;
    const int error = all_of(line + length, service, hints, &found, look_up);
    *result = found;
    return error == 0 && found == NULL ? EAI_NONAME : error;
  }
  fclose(file);
  return look_up(name, service, hints, result);
}
