# Builds an image with Debian's PostgreSQL and the extension snowflake, to try the extension on other systems.
#
#   docker build -t snowflake .
#   docker run -d --name db -v snowflake:/var/lib/postgresql/data snowflake
#   docker exec -it db psql -c 'CREATE EXTENSION snowflake' -c 'SELECT snowflake.next_id(5)'
#
# Connections over the network need a password: ALTER ROLE postgres PASSWORD '...', and -p 5432:5432.
#
# The server accepts clock steps of up to 30 days (snowflake.max_forward_jump), because a laptop that wakes up steps its
# clock.

FROM debian:trixie-slim AS build
RUN apt-get update && \
    apt-get install -y --no-install-recommends g++ make postgresql-server-dev-17
COPY . /src
RUN make -C /src PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config && \
    make -C /src PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config DESTDIR=/installed install

FROM debian:trixie-slim
# The image has no cluster. Each container makes its own.
RUN mkdir -p /etc/postgresql-common/createcluster.d && \
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/image.conf && \
    apt-get update && \
    apt-get install -y --no-install-recommends postgresql-17 && \
    rm -rf /var/lib/apt/lists/* && \
    install -d -o postgres -g postgres -m 700 /var/lib/postgresql/data
COPY --from=build /installed/ /
ENV PATH=/usr/lib/postgresql/17/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 PGDATA=/var/lib/postgresql/data
USER postgres
VOLUME /var/lib/postgresql/data
EXPOSE 5432
# PostgreSQL's fast shutdown.
STOPSIGNAL SIGINT
CMD ["sh", "-euc", "if [ ! -s $PGDATA/PG_VERSION ]; then initdb --auth-local=peer --auth-host=scram-sha-256; echo 'host all all all scram-sha-256' >>$PGDATA/pg_hba.conf; fi; exec postgres -c shared_preload_libraries=snowflake -c snowflake.max_forward_jump=30d -c listen_addresses='*'"]
