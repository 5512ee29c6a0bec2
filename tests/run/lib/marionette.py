# SPDX-License-Identifier: Apache-2.0
"""Firefox by its own remote protocol (marionette), without a driver: a line "LENGTH:JSON" each way."""
import json
import os
import socket
import subprocess

from evidence import until, within


class Firefox:
    """A headless Firefox with a new profile in a folder."""

    def __init__(self, program, folder, width=1400, height=900):
        with open(os.path.join(folder, "user.js"), "w") as f:
            f.write('user_pref("marionette.port", 0);\nuser_pref("browser.shell.checkDefaultBrowser", false);\n'
                    'user_pref("datareporting.policy.dataSubmissionEnabled", false);\nuser_pref("app.update.enabled", false);\n'
                    'user_pref("network.captive-portal-service.enabled", false);\nuser_pref("network.connectivity-service.enabled", false);\n'
                    'user_pref("browser.aboutwelcome.enabled", false);\nuser_pref("toolkit.telemetry.enabled", false);\n')
        env = dict(os.environ, HOME=folder, MOZ_CRASHREPORTER_DISABLE="1", MOZ_HEADLESS_WIDTH=str(width), MOZ_HEADLESS_HEIGHT=str(height))
        self.log = open(os.path.join(folder, "log"), "w+")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen([program, "--headless", "--no-remote", "--marionette", "--profile", folder, "about:blank"],
                                        stdout=self.log, stderr=self.log, env=env)
        port = os.path.join(folder, "MarionetteActivePort")
        until(lambda: os.path.exists(port) and os.path.getsize(port) or self.process.poll() is not None, 120)
        with open(port) as f:
            self.socket = socket.create_connection(("127.0.0.1", int(f.read())), timeout=within(120))
        self.number = 0
        self.read()
        self.ask("WebDriver:NewSession", {})

    def read(self):
        head = b""
        while not head.endswith(b":"):
            head += self.socket.recv(1) or self.lost()
        left, text = int(head[:-1]), b""
        while len(text) < left:
            text += self.socket.recv(left - len(text)) or self.lost()
        return json.loads(text)

    def lost(self):
        raise RuntimeError("Firefox has ended: %s" % self.process.poll())

    def ask(self, name, arguments):
        self.number += 1
        text = json.dumps([0, self.number, name, arguments]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self.read()
        if error:
            raise RuntimeError("%s: %s" % (name, error.get("message")))
        return result.get("value") if isinstance(result, dict) else result

    def go(self, address):
        self.ask("WebDriver:Navigate", {"url": address})

    def run(self, script, *args):
        """What a function of this body returns."""
        return self.ask("WebDriver:ExecuteScript", {"script": script, "args": list(args), "sandbox": None})

    def click(self, selector):
        found = self.ask("WebDriver:FindElement", {"using": "css selector", "value": selector})
        self.ask("WebDriver:ElementClick", {"id": list(found.values())[0]})

    def drag(self, first, last):
        """The mouse, from one point of the window to another."""
        at = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 50, "origin": "viewport"} for x, y in (first, last)]
        self.ask("WebDriver:PerformActions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            at[0], {"type": "pointerDown", "button": 0}, at[1], {"type": "pointerUp", "button": 0}]}]})

    def picture(self, path):
        import base64
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.ask("WebDriver:TakeScreenshot", {"full": False})))

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(within(20))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
