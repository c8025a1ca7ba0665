FROM node:20-slim AS install
WORKDIR /weir
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --omit=dev

FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --home-dir /weir weir && mkdir -p /weir /data && chown weir /data && chmod 700 /data
WORKDIR /weir
COPY --from=install /weir/node_modules node_modules
COPY package.json LICENSE ./
COPY bin bin
COPY docs docs
COPY providers providers
COPY src src
COPY tools/fake-upstream tools/fake-upstream
USER weir
ENV HOST=0.0.0.0 WEIR_DATA=/data
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/weir/bin/weir"]
CMD ["serve"]
