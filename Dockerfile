# The image of Weir. It runs as a user without a name and writes below /data only, so it works with a read-only root file
# system. The images below are pinned by digest: to update them, change tag and digest together.
FROM node:24.20.0-bookworm-slim@sha256:ba849c60be29959425b8734d57b8b4b7d56f98edd9504c9af091d5281095a71e AS install
WORKDIR /packages
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --omit=dev
# The package has its tables four times; Weir loads those in esm/.
RUN rm -r node_modules/gpt-tokenizer/cjs node_modules/gpt-tokenizer/data node_modules/gpt-tokenizer/src
WORKDIR /weir
COPY package.json LICENSE .env.example ./
COPY bin bin
COPY docs docs
COPY providers providers
COPY src src
COPY tools/fake-upstream tools/fake-upstream
COPY scripts/build.ts scripts/build.ts
COPY scripts/build-console.ts scripts/build-console.ts
COPY tsconfig.json tsconfig.json
COPY console console
# Bundles the program with its bytecode, so that it starts faster.
RUN ln -s /packages/node_modules node_modules
RUN bin/weir-bun scripts/build.ts
# The web console is built from packages of its own, which the image does not need.
RUN cd console && npm ci --ignore-scripts --include=dev
RUN bin/weir-bun scripts/build-console.ts
RUN rm -r node_modules scripts console tsconfig.json
# A checkout may be readable by its owner only; the user of the image must be able to read it.
RUN chmod -R a+rX,go-w /packages /weir

FROM debian:bookworm-20260824-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171
RUN mkdir -m 700 /data && chown 10001:10001 /data
COPY --from=install /packages/node_modules /weir/node_modules
COPY --from=install /weir /weir
WORKDIR /weir
USER 10001:10001
# SQLite sorts large results in temporary files. Nothing but /data can be written, so they are created there.
ENV HOST=0.0.0.0 PORT=8080 WEIR_DATA=/data SQLITE_TMPDIR=/data PATH=/weir/bin:$PATH
VOLUME /data
EXPOSE 8080
# /health/live, because an orchestrator ends an unhealthy container, and an overloaded or stopping gateway must not be
# ended. node:http, because Bun's fetch would send the request to the proxy of HTTP_PROXY.
HEALTHCHECK --interval=15s --timeout=5s --start-period=300s CMD ["/weir/bin/weir-bun", "-e", "require('node:http').get({ host: '127.0.0.1', port: process.env.PORT, path: '/health/live' }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
ENTRYPOINT ["/weir/bin/weir"]
CMD ["serve"]
