{{- define "weir.labels" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "weir.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "weir.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "weir.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* A value of an environment variable. Helm reads a bare on as true, and writes large numbers as 1e+06. */ -}}
{{- define "weir.setting" -}}
{{- if kindIs "bool" . }}{{ ternary "on" "off" . }}{{ else }}{{ if kindIs "float64" . }}{{ toJson . }}{{ else }}{{ . }}{{ end }}{{ end -}}
{{- end -}}

{{- /* The settings that are not secret. The job that migrates has the same, because some are about its connection. */ -}}
{{- define "weir.settings" -}}
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ include "weir.setting" $value | quote }}
{{- end }}
{{- end -}}

{{- define "weir.egress" -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- with .Values.networkPolicy.egressTo }}
- to:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}
