# SPDX-License-Identifier: Apache-2.0
"""A Flask application: a template of Jinja2, and JSON."""
from flask import Flask, jsonify, render_template_string

application = Flask(__name__)
TEXT = "{% for r in rows %}<tr>{% for c in r %}<td>{{ c|e }}</td>{% endfor %}</tr>{% endfor %}"


@application.route("/page")
def page():
    return render_template_string(TEXT, rows=[[i * j for i in range(10)] for j in range(20)])


@application.route("/data")
def data():
    return jsonify([{"a": i, "b": str(i)} for i in range(200)])
