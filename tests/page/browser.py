"""A headless Chromium, driven over a pipe with the Chrome DevTools Protocol (chromedevtools.github.io).

Messages are JSON, each ended by a NUL: written to the browser's file descriptor 3, read from its 4.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time

MOST_S = 60
FLAGS = [
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    '--remote-debugging-pipe',
    '--disable-background-networking',
    '--no-first-run',
    '--disable-dev-shm-usage',
    '--force-device-scale-factor=1',
    '--hide-scrollbars']
KEYS = {
    'Tab': 9,
    'Enter': 13,
    'Escape': 27,
    'ArrowLeft': 37,
    'ArrowUp': 38,
    'ArrowRight': 39,
    'ArrowDown': 40,
    ' ': 32,
    '+': 187,
    '-': 189}


class Browser:
    """One page. `complaints` has what it wrote to the console, and what went wrong in its scripts."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp()
        self.n_sent, self.rest, self.complaints, self.requested = 0, b'', [], []
        down_read, self.down = os.pipe()
        self.up, up_write = os.pipe()

        # 3 and 4 may be ends of the pipes themselves.
        def at_three_and_four():
            reader, writer = os.dup(down_read), os.dup(up_write)
            os.dup2(reader, 3)
            os.dup2(writer, 4)

        self.process = subprocess.Popen([program,
                                         *FLAGS,
                                         f'--user-data-dir={self.folder}',
                                         'about:blank'],
                                        close_fds=False,
                                        preexec_fn=at_three_and_four,
                                        stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(down_read)
        os.close(up_write)
        self.session = None
        target = next(of for of in self.call('Target.getTargets')['targetInfos'] if of['type'] == 'page')
        self.session = self.call('Target.attachToTarget', targetId=target['targetId'], flatten=True)['sessionId']
        for domain in 'Page', 'Runtime', 'Log', 'Network':
            self.call(f'{domain}.enable')

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- messages ----

    def receive(self):
        while b'\0' not in self.rest:
            piece = os.read(self.up, 1 << 20)
            if not piece:
                raise RuntimeError('the browser has ended')
            self.rest += piece
        text, self.rest = self.rest.split(b'\0', 1)
        message = json.loads(text)
        method, of = message.get('method'), message.get('params', {})
        if method == 'Runtime.exceptionThrown':
            details = of['exceptionDetails']
            self.complaints.append(details.get('exception', {}).get('description') or details['text'])
        elif method == 'Runtime.consoleAPICalled' and of['type'] in ('error', 'warning', 'assert'):
            self.complaints.append(str([piece.get('value') for piece in of['args']]))
        elif method == 'Log.entryAdded' and of['entry']['level'] in ('error', 'warning'):
            self.complaints.append(of['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            self.requested.append(of['request']['url'])
        return message

    def call(self, method, **params):
        self.n_sent += 1
        message = {'id': self.n_sent, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.down, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.receive()
            if answer.get('id') == self.n_sent:
                if 'error' in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer['result']

    # ---- what a reader does ----

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.call('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in answer:
            details = answer['exceptionDetails']
            raise RuntimeError(f"{script}: {details.get('exception', {}).get('description') or details['text']}")
        return answer['result'].get('value')

    def look(self, width, height, theme='light'):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': theme}])

    def open(self, path):
        """Seconds until the page has drawn itself."""
        begun = time.monotonic()
        self.call('Page.navigate', url='file://' + os.path.abspath(path))
        while not self.run("document.documentElement?.dataset.ready === 'yes' && document.readyState === 'complete'"):
            if time.monotonic() - begun > MOST_S or self.complaints:
                raise RuntimeError(f'{path} does not draw itself: {self.complaints}')
            time.sleep(0.01)
        self.run('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))')
        return time.monotonic() - begun

    def key(self, name):
        of = {'key': name, 'code': name, 'windowsVirtualKeyCode': KEYS[name]}
        if name in ('Enter', ' ', '+', '-'):
            of['text'] = '\r' if name == 'Enter' else name
        self.call('Input.dispatchKeyEvent', type='keyDown', **of)
        self.call('Input.dispatchKeyEvent', type='keyUp', key=name, code=name, windowsVirtualKeyCode=KEYS[name])

    def mouse(self, kind, x, y):
        buttons = {} if kind == 'mouseMoved' else {'button': 'left', 'clickCount': 1}
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **buttons)

    def drag(self, x, y, to_x):
        self.mouse('mousePressed', x, y)
        for i in range(1, 6):
            self.call('Input.dispatchMouseEvent', type='mouseMoved', x=x +
                      (to_x - x) * i / 5, y=y, button='left', buttons=1)
        self.mouse('mouseReleased', to_x, y)

    def click(self, selector):
        x, y = self.place(selector)
        self.mouse('mousePressed', x, y)
        self.mouse('mouseReleased', x, y)

    def place(self, selector, across=0.5, down=0.5):
        """A point of an element, which is scrolled into view."""
        return self.run(f'''(() => {{ const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: 'center'}}); const box = element.getBoundingClientRect();
            return [box.left + {across} * box.width, box.top + {down} * box.height]; }})()''')

    def screenshot(self, path, whole=True):
        import base64
        size = self.call('Page.getLayoutMetrics')['cssContentSize']
        clip = {
            'x': 0,
            'y': 0,
            'width': size['width'],
            'height': min(
                size['height'],
                16000),
            'scale': 1} if whole else None
        answer = self.call('Page.captureScreenshot', captureBeyondViewport=whole, **({'clip': clip} if clip else {}))
        with open(path, 'wb') as file:
            file.write(base64.b64decode(answer['data']))
